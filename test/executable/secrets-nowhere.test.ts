/**
 * Every feature once, at log level debug, with a search afterwards through all that was said and left: output, logs,
 * HTTP replies, errors, the audit log, the database with its write-ahead log and copies, and what hooks were started
 * with. A secret may be where it is handed out, and nowhere else.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { Database } from '../../src/db/database.ts';
import { migrations } from '../../src/db/sqlite/migrations.ts';
import { acmeVault, needsAcme } from '../harness/acme/vault.ts';
import { makeChain, openssl } from '../harness/ca/openssl-chain.ts';
import { scriptedAcme } from '../harness/ca/scripted-acme.ts';
import { allCommands } from '../harness/command-tree.ts';
import { fakeDns } from '../harness/dns/fake-dns.ts';
import { hookScript } from '../harness/dns/hook-script.ts';
import { eventually } from '../harness/eventually.ts';
import { routes } from '../harness/http/all-routes.ts';
import { converse, requestText } from '../harness/http/raw.ts';
import { appOf, factors } from '../harness/http/second-factors.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { SecretSearch } from './secret-search.ts';
import { keyOf, SecretWalk } from './secret-walk.ts';

const web = '--name=web';

/** A server that refuses everything, and says back all that it was sent. */
async function echoing(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    const said = JSON.stringify({ message: 'no', headers: request.headers, url: request.url });
    response.writeHead(403, { 'Content-Type': 'application/json' }).end(said);
  });
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Certificates and keys from elsewhere, in all the ways in which they come, right and wrong. */
async function importing(walk: SecretWalk): Promise<void> {
  const { dir, search } = walk;
  const { fullchainPath, leaf } = makeChain(dir, { label: 'Imported', keyAlgorithm: 'rsa2048' });
  const stranger = makeChain(dir, { label: 'Stranger', keyAlgorithm: 'ec256' });
  search.addPrivateKey(keyOf('imported'), leaf.keyPem);
  search.addPrivateKey('the key of a stranger', stranger.leaf.keyPem);
  const password = walk.secret('password of a bundle');
  const wrong = walk.secret('wrong password of a bundle');
  const bundle = join(dir, 'bundle.p12');
  openssl(
    dir,
    ...['pkcs12', '-export', '-in', fullchainPath, '-inkey', leaf.keyPath, '-out', bundle],
    ...['-passout', `pass:${password}`],
  );
  const into = ['certificate', 'import', '--name=imported'];
  await walk.done([...into, `--fullchain=${fullchainPath}`, `--private-key=${leaf.keyPath}`]);
  await walk.done([...into, `--pkcs12=${bundle}`, `--password-file=${walk.file(password)}`]);
  await walk.refused([...into, `--pkcs12=${bundle}`, `--password-file=${walk.file(wrong)}`]);
  await walk.refused([...into, `--fullchain=${fullchainPath}`, `--private-key=${stranger.leaf.keyPath}`]);
  const keystore = walk.file(walk.secret('password of an exported keystore'));
  const out = ['certificate', 'export', '--name=imported', `--out=${join(dir, 'exported')}`];
  await walk.done([...out, '--file=keystore.p12', `--keystore-password-file=${keystore}`]);
  await walk.refused([...out, '--file=private.key', `--keystore-password-file=${keystore}`]);
  const broken = leaf.keyPem.replace(/\n.{60}/, '\n');
  await walk.refused([...into, `--fullchain=${fullchainPath}`, `--private-key=${walk.file(broken)}`]);
  await walk.refused([...into, `--fullchain=${walk.file(`${leaf.keyPem}${stranger.leaf.keyPem}`)}`]);
  await walk.refused([...into, '--fullchain=-'], { input: leaf.keyPem });
}

/** People and their passwords at the command line. */
async function people(walk: SecretWalk): Promise<string> {
  const first = walk.secret('first password');
  const second = walk.secret('second password');
  const named = ['--name=alice', '--password-stdin'];
  await walk.done(['admin', 'create', ...named], { input: `${first}\n` });
  await walk.refused(['admin', 'create', ...named], { input: `${first}\n` });
  await walk.refused(['admin', 'create', '--name=bob', '--password-stdin'], { input: 'alice12\n' });
  await walk.refused(['admin', 'create', '--name=bob', `--password=${'x'.repeat(12)}`]);
  await walk.done(['admin', 'reset-password', ...named], { input: `${second}\n` });
  return second;
}

/** DNS providers whose credentials somebody sends back, prints or does not like. */
async function providers(
  walk: SecretWalk,
  echo: string,
  resolver: string,
): Promise<{ readonly hookCalls: string }> {
  const add = async (name: string, type: string, config: object | string) => {
    const text = typeof config === 'string' ? config : JSON.stringify(config);
    const words = ['dns-provider', 'add', `--name=${name}`, `--type=${type}`, `--zone=${name}.test`];
    return walk.run([...words, `--secret-file=${walk.file(text)}`]);
  };
  const hookCalls = join(walk.dir, 'hook-calls');
  const script = `require('node:fs').appendFileSync(${JSON.stringify(hookCalls)},
      JSON.stringify([process.argv, process.env]) + '\\n');
    console.error('I was given', process.env.DNS_TOKEN); process.exit(3);`;
  const token = walk.secret('token of a hook');
  const secret = randomBytes(32);
  walk.search.add('key of dynamic updates', secret.toString('base64'));
  walk.search.add('key of dynamic updates', secret);
  const api = walk.secret('token of an API');
  const outcomes = [
    await add('hook', 'exec', { command: hookScript(walk.dir, script), environment: { DNS_TOKEN: token } }),
    await add('webhook', 'webhook', {
      url: echo,
      username: 'vault',
      password: walk.secret('password of a webhook'),
    }),
    await add('update', 'rfc2136', {
      server: '127.0.0.1:9',
      key_name: 'vault',
      secret: secret.toString('base64'),
    }),
    await add('cloud', 'cloudflare', { api_token: api }),
  ];
  for (const { code, stderr } of outcomes) assert.equal(code, 0, stderr);
  for (const wrong of [
    `api_token: ${api}\n  - and: [`,
    { api_token: `${api} ${api}` },
    { api_token: api, [api]: true },
    { api_tokens: api },
    `${api} ${api}`,
    `${api}: {`,
  ]) {
    assert.notEqual((await add('wrong', 'cloudflare', wrong)).code, 0, JSON.stringify(wrong));
  }
  for (const name of ['hook', 'webhook', 'update']) {
    const words = ['dns-provider', 'test', `--name=${name}`, `--domain=www.${name}.test`];
    await walk.refused([...words, `--resolver=${resolver}`]);
  }
  return { hookCalls };
}

/** A CA that takes only its customers, and one that refuses and says what it was sent. */
async function authorities(walk: SecretWalk, t: TestContext, echo: string): Promise<void> {
  const key = randomBytes(32);
  walk.search.add('key of an external account', key);
  walk.search.add('key of an external account', key.toString('base64url'));
  const ca = await scriptedAcme(t, { externalAccounts: { 'kid-1': key } });
  const binding = ['--eab-kid=kid-1', `--eab-hmac-key-file=${walk.file(`${key.toString('base64url')}\n`)}`];
  const place = [`--directory=${ca.directoryUrl}`, '--accept-terms'];
  await walk.done(['issuer', 'add', '--name=ca', ...place, ...binding]);
  const wrong = walk.secret('wrong key of an external account');
  await walk.refused([
    'issuer',
    'add',
    '--name=x',
    ...place,
    '--eab-kid=kid-1',
    `--eab-hmac-key-file=${walk.file(`${wrong} !`)}`,
  ]);
  await walk.refused(['issuer', 'add', '--name=x', `--directory=${echo}/dir`, '--accept-terms', ...binding]);
  await walk.done(['certificate', 'create', '--name=acme', '--domain=acme.test', '--issuer=ca', '--wait']);
  await walk.done(['certificate', 'renew', '--name=acme', '--wait']);
  await walk.done(['issuer', 'update', '--name=ca', ...binding]);
  const [account] = JSON.parse(await walk.done(['acme-account', 'list', '--json'])) as { id: string }[];
  await walk.done(['acme-account', 'rollover', `--id=${account?.id}`]);
  await walk.done(['certificate', 'revoke', '--name=acme', '--reason=keyCompromise']);
}

async function apiKeys(walk: SecretWalk): Promise<{ readonly raw: string; readonly revoked: string }> {
  const raws: string[] = [];
  for (const name of ['API key', 'revoked API key']) {
    const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'].map(
      (one) => `--scope=${one}`,
    );
    const create = ['api-key', 'create', `--name=${name}`, '--certificate=*', ...scopes];
    const raw = await walk.done(create, { mayShow: [name] });
    walk.search.addToken(name, raw.split('.')[1] ?? '');
    raws.push(raw);
  }
  await walk.done(['api-key', 'revoke', '--id=2']);
  const [raw = '', revoked = ''] = raws;
  return { raw, revoked };
}

/** What clients do, and what people do who have a key and do it wrong. */
async function clients(walk: SecretWalk, { raw, revoked }: { raw: string; revoked: string }): Promise<void> {
  for (const name of ['web', 'rsa', 'ed', 'acme']) {
    await walk.download(raw, name, 'private.key');
    await walk.download(raw, name, 'private-key.pem');
  }
  const [prefix, secret = ''] = raw.split('.');
  const near = `${prefix}.${secret.split('').toReversed().join('')}`;
  for (const key of [revoked, near, secret, `${raw}x`, '']) {
    const headers = { Authorization: `Bearer ${key}` };
    assert.equal((await walk.ask('GET', '/api/v1/certificates', { headers })).status, 401);
  }
  const headers = { Authorization: `Bearer ${raw}` };
  await walk.expect(202, 'POST', '/api/v1/certificates/web/renew', { headers });
  for (const path of [`/api/v1/certificates?key=${raw}`, `/api/v1/certificates?${raw}=1`]) {
    await walk.ask('GET', path, { headers });
  }
  await walk.ask('GET', '/api/v1/administrators', { headers });
  await keystores(walk, headers);
  const url = walk.server?.url ?? '';
  const lines = [`Authorization: Bearer ${raw}`, `Cookie: vault_session=${raw}`, 'Connection: close'];
  for (const text of [
    requestText('GET', '/api/v1/certificates', [...lines, 'Content-Length: 1', 'Content-Length: 2']),
    requestText('GET', '/api/v1/certificates', [...lines, `X: ${'y'.repeat(20_000)}`]),
    requestText('GET', '/api/v1/certificates', [...lines, `X-API-Key ${raw}`]),
    requestText(raw, '/api/v1/certificates', lines),
    `${raw}\r\n\r\n`,
  ]) {
    walk.search.said('the answer to a malformed request', await converse(url, text));
  }
}

/** Formats with a private key, and their passwords in the right place and in wrong ones. */
async function keystores(walk: SecretWalk, headers: Readonly<Record<string, string>>): Promise<void> {
  const password = walk.secret('password of a keystore');
  const all = { ...headers, 'Keystore-Password': password };
  const mayShow = [keyOf('web')];
  for (const file of ['combined.pem', 'keystore.p12', 'keystore.p12?encryption=legacy', 'archive.tar']) {
    await walk.expect(200, 'GET', `/api/v1/certificates/web/${file}`, { headers: all, mayShow });
  }
  const long = { ...headers, 'Keystore-Password': password.repeat(10) };
  await walk.expect(400, 'GET', '/api/v1/certificates/web/keystore.p12', { headers: long });
  for (const query of [`password=${password}`, `${password}=1`, `encryption=${password}`]) {
    await walk.expect(400, 'GET', `/api/v1/certificates/web/keystore.p12?${query}`, { headers: all });
  }
}

/** All that administrators do over HTTP, with the mistakes that they make. */
async function administration(walk: SecretWalk, password: string, echo: string): Promise<void> {
  const { search } = walk;
  const post = (path: string, body: unknown, mayShow: string[] = []) =>
    walk.ask('POST', path, { body, mayShow });
  const page = { 'Sec-Fetch-Site': 'same-origin' };
  const wrong = walk.secret('wrong password');
  for (const body of [
    { name: 'alice', password: wrong },
    { name: wrong, password },
    { name: 'alice', password, [wrong]: 1 },
    `{"name": "alice", "password": "${wrong}"`,
    `{"name": "alice", "password": ${wrong}}`,
    `"${wrong}"`,
  ]) {
    const { status } = await walk.ask('POST', '/api/v1/session', { body, headers: page });
    assert([400, 401].includes(status), String(status));
  }
  const signIn = async (word: string, session: string) => {
    const body = { name: 'alice', password: word };
    const answer = await walk.ask('POST', '/api/v1/session', { body, headers: page, mayShow: [session] });
    assert.equal(answer.status, 201, answer.text);
    walk.signedIn(answer.headers.get('Set-Cookie'), session);
  };
  await signIn(password, 'a session');
  const next = walk.secret('next password');
  const change = { current: password, new: next };
  const changed = await walk.ask('PUT', '/api/v1/session/password', { body: change });
  assert.equal(changed.status, 204, changed.text);
  await walk.ask('PUT', '/api/v1/session/password', { body: { ...change, new: 'short' } });
  const app = await walk.ask('POST', `${factors}/totp`, {
    body: { password: next },
    mayShow: ['secret of an authenticator app', 'set-up of an authenticator app'],
  });
  const { pending, secret } = JSON.parse(app.text) as { pending: string; secret: string };
  search.add('secret of an authenticator app', secret);
  search.add('set-up of an authenticator app', pending);
  const code = appOf(Date.now, secret)();
  const codes = await walk.ask('PUT', `${factors}/totp`, {
    body: { pending, code },
    mayShow: ['recovery code'],
  });
  for (const one of (JSON.parse(codes.text) as { recovery_codes: string[] }).recovery_codes)
    search.add('recovery code', one);
  const removed = await walk.ask('POST', `${factors}/totp/remove`, { body: { password: next } });
  assert.equal(removed.status, 204, removed.text);
  const made = await post(
    '/api/v1/api-keys',
    { name: 'by http', scopes: ['certificates:read'], certificates: ['*'] },
    ['API key made over HTTP'],
  );
  assert.equal(made.status, 201, made.text);
  const { key } = JSON.parse(made.text) as { key: string };
  search.addToken('API key made over HTTP', key.split('.')[1] ?? '');
  const { fullchainPem, leaf } = makeChain(walk.dir, { label: 'By HTTP', keyAlgorithm: 'ec256' });
  search.addPrivateKey(keyOf('by-http'), leaf.keyPem);
  const bundle = `${fullchainPem}${leaf.keyPem}`;
  const files = [{ name: 'bundle.pem', text: bundle }];
  for (const path of ['/api/v1/imports/preview', '/api/v1/imports']) {
    const name = path.endsWith('preview') ? {} : { name: 'by-http' };
    const { status, text } = await post(path, { ...name, files });
    assert([200, 201].includes(status), text);
    await post(path, { ...name, files: [{ name: 'bundle.pem', text: bundle.replace(/\n.{60}/g, '\n') }] });
    await post(path, { ...name, files, [wrong]: bundle });
    await post(path, { ...name, files: [{ name: 'x.p12', content_base64: 'AAAA' }], password: wrong });
  }
  const token = walk.secret('token by HTTP');
  const provider = { name: 'by-http', type: 'webhook', zones: ['by-http.test'] };
  const config = { url: echo, username: 'vault', password: token };
  assert.equal((await post('/api/v1/dns-providers', { ...provider, config })).status, 201);
  await post('/api/v1/dns-providers', { ...provider, config: { ...config, url: token } });
  await post('/api/v1/dns-providers', { ...provider, config: token });
  await post('/api/v1/dns-providers/by-http/test', { domain: 'www.by-http.test' });
  const binding = { eab_kid: 'kid', eab_hmac_key: token };
  await post('/api/v1/issuers', { name: 'by-http', directory_url: `${echo}/dir`, ...binding });
  await post('/api/v1/issuers', {
    name: 'by-http',
    directory_url: `${echo}/dir`,
    ...binding,
    eab_hmac_key: `${token}!`,
  });
  await post('/api/v1/acme-accounts/1/rollover', {});
  const person = walk.secret('password of bob');
  await post('/api/v1/administrators', { name: 'bob', password: person });
  await post('/api/v1/administrators', { name: 'carol', password: 'carol' });
  for (const path of [
    ...['/api/v1/audit-events', '/api/v1/audit-events/export', '/api/v1/audit-events/export?format=csv'],
    ...['/api/v1/administrators', '/api/v1/sessions', '/api/v1/dns-providers', '/api/v1/issuers'],
  ]) {
    await walk.ask('GET', path);
  }
  await rest(walk);
  await signIn(next, 'another session');
  await walk.expect(204, 'DELETE', '/api/v1/session');
}

/** Routes that the walk has not come by: each is asked once more, what deletes last. */
async function rest(walk: SecretWalk): Promise<void> {
  const isLast = (method: string) => Number(method === 'DELETE');
  for (const { method, path } of routes.toSorted((a, b) => isLast(a.method) - isLast(b.method))) {
    // The session is still needed, and the keys that a download shows are known by their names alone.
    if (path === '/api/v1/session' || /private[.-]key/.test(path)) continue;
    const filled = path.replace('{name}', 'web').replace('{id}', '1').replace('{token}', 'token');
    const body = ['POST', 'PUT', 'PATCH'].includes(method) ? {} : undefined;
    await walk.ask(method, filled, { body });
  }
}

test(
  'no output or file of a command contains a secret that the command is not meant to show',
  needs('openssl'),
  async (t) => {
    const walk = new SecretWalk(t);
    const { search } = walk;
    const dns = await fakeDns(t);
    await people(walk);
    await importing(walk);
    const { hookCalls } = await providers(walk, await echoing(t), dns.server);
    const passphrase = walk.secret('passphrase of a backup');
    const backup = join(walk.dir, 'backup.vault');
    await walk.done(['backup', backup, '--with-master-key', `--passphrase-file=${walk.file(passphrase)}`]);
    search.said('a backup', readFileSync(backup));
    await walk.done(['database', 'copy', '--to', join(walk.dir, 'moved')]);
    await walk.done(['database', 'reopen', '--yes']);
    for (const { words, options } of await allCommands()) {
      if (words.join(' ') === 'serve' || [...walk.ran].some((ran) => ran.startsWith(words.join(' '))))
        continue;
      const required = Object.entries(options).filter(([, one]) => one.required === true);
      const given = required.map(([name, one]) =>
        one.type === 'positional' ? backup : `--${name}=${name === 'id' ? 1 : 'web'}`,
      );
      await walk.run([...words, ...given]);
    }
    walk.files('at the end');
    search.said('what the hook was started with', readFileSync(hookCalls), ['token of a hook']);
    await walk.unseal();
    assert(search.names().length >= 12, search.names().join());
    assert(search.count() > 80, String(search.count()));
    assert.deepEqual(search.complaints(), []);
  },
);

test(
  'no response, log or file of the server contains a secret that it is not meant to show',
  needs('openssl'),
  async (t) => {
    const walk = new SecretWalk(t);
    const { search } = walk;
    const echo = await echoing(t);
    const password = walk.secret('first password');
    await walk.done(['admin', 'create', '--name=alice', '--password-stdin'], { input: `${password}\n` });
    await walk.done(['certificate', 'create', web, '--domain=a.test']);
    await walk.done(['certificate', 'create', '--name=rsa', '--domain=a.test', '--key-type=rsa2048']);
    await walk.done(['certificate', 'create', '--name=ed', '--domain=a.test', '--key-type=ed25519']);
    await authorities(walk, t, echo);
    const keys = await apiKeys(walk);
    const dns = await fakeDns(t);
    walk.server = await serve(t, walk.data, { args: ['--log-level', 'debug', '--resolver', dns.server] });
    await clients(walk, keys);
    await administration(walk, password, echo);
    await walk.stop();
    await walk.unseal();
    const later = { ...migrations, '9999-later': { up: async () => undefined } };
    await (await Database.open(join(walk.data, 'vault.db'), realWorld, { migrations: later })).close();
    const left = walk.files('after an upgrade');
    assert(left.includes('vault.db.before-9999-later'), left.join());
    assert(search.names().length >= 18, search.names().join());
    assert(search.count() > 120, String(search.count()));
    assert.deepEqual(search.complaints(), []);
  },
);

test('the setup token appears only in the output of the command that creates the setup link', async (t) => {
  const walk = new SecretWalk(t);
  walk.server = await serve(t, walk.data, { args: ['--log-level', 'debug'] });
  await walk.ask('GET', '/api/v1/health');
  const link = await walk.run(['admin', 'setup-link'], { mayShow: ['the setup token'] });
  const token = /#token=([\w-]{43})\n/.exec(link.stdout)?.[1] ?? '';
  walk.search.addToken('the setup token', token);
  const password = walk.secret('first password');
  const page = { 'Sec-Fetch-Site': 'same-origin' };
  const setup = (body: unknown, mayShow: string[] = []) =>
    walk.ask('POST', '/api/v1/setup', { body, headers: page, mayShow });
  for (const body of [
    { token: `${token}x`, name: 'alice', password },
    { token, name: 'alice', password: 'short' },
    { token, name: 'alice', password, [token]: password },
    `{"token": "${token}", "password": "${password}"`,
  ]) {
    assert.notEqual((await setup(body)).status, 201);
  }
  const done = await setup({ token, name: 'alice', password }, ['the session']);
  assert.equal(done.status, 201, done.text);
  walk.signedIn(done.headers.get('Set-Cookie'), 'the session');
  assert.equal((await setup({ token, name: 'eve', password })).status, 403);
  await walk.ask('GET', '/api/v1/audit-events');
  await walk.stop();
  await walk.unseal();
  assert.deepEqual(walk.search.complaints(), []);
});

suite('with a real CA', needsAcme(), () => {
  test('no key of an account, external account, DNS zone or certificate appears in output, logs or files', async (t) => {
    const eab = randomBytes(32).toString('base64url');
    const acme = await acmeVault(t, { eab: { 'kid-1': eab }, issuer: eabOptions(t, eab) });
    const walk = new SecretWalk(t, acme.dataDir);
    walk.search.addToken('the key of the external account', eab);
    walk.search.addToken('the key of the zone', acme.dns.secret);
    await acme.addDnsProvider();
    walk.server = await acme.serve();
    for (const [name, challenge] of Object.entries({ one: 'http-01', two: 'tls-alpn-01', three: 'dns-01' })) {
      const words = [`--name=${name}`, '--domain=www.example.test', `--challenge=${challenge}`];
      await walk.done(['certificate', 'create', '--issuer=pebble', '--wait', ...words]);
    }
    await walk.done(['certificate', 'renew', '--name=three', '--wait']);
    await walk.done(['acme-account', 'rollover', '--id=1']);
    await walk.done(['certificate', 'revoke', '--name=two', '--reason=superseded']);
    await walk.refused([
      ...['certificate', 'create', '--name=four', '--domain=elsewhere.test', '--issuer=pebble', '--wait'],
    ]);
    await eventually('the records are gone', () =>
      acme.query('select 1 from acme_challenges').length === 0 ? true : undefined,
    );
    await walk.run(['renewals', 'list', '--json']);
    await walk.done(['audit', 'list', '--json']);
    await walk.stop();
    await walk.unseal();
    assert(walk.search.names().some((name) => name.startsWith('the key of an account')));
    assert.deepEqual(walk.search.complaints(), []);
  });
});

function eabOptions(t: TestContext, eab: string): string[] {
  const file = join(tempDir(t), 'eab');
  writeFileSync(file, eab, { mode: 0o600 });
  return ['--eab-kid', 'kid-1', '--eab-hmac-key-file', file];
}

suite('the search', () => {
  const finds = (secret: string | Buffer, content: string | Buffer, mayShow: string[] = []) => {
    const search = new SecretSearch();
    search.said('somewhere', content, mayShow);
    search.add('it', secret);
    return search.complaints().length > 0;
  };

  test('finds a secret in every encoding, and reports none where the secret is allowed', () => {
    const secret = 'päss wörd "of" nobody';
    const bytes = Buffer.from(secret);
    for (const content of [
      `before ${secret} after`,
      Buffer.concat([Buffer.from([0, 255]), bytes]),
      bytes.toString('hex'),
      bytes.toString('hex').toUpperCase(),
      JSON.stringify({ secret }),
      `?x=${encodeURIComponent(secret)}`,
      ...['', 'u', 'us', 'user:'].flatMap((before) => [
        Buffer.from(`${before}${secret} and more`).toString('base64'),
        Buffer.from(`${before}${secret}`).toString('base64url'),
      ]),
    ]) {
      assert(finds(secret, content), String(content));
      assert(!finds(secret, content, ['it']));
    }
    assert(!finds(secret, createHash('sha256').update(secret).digest()));
    assert(!finds(secret, secret.slice(1)));
  });

  test('finds a private key by its numbers, its DER and a single line of its PEM', (t) => {
    const { leaf } = makeChain(tempDir(t), { keyAlgorithm: 'rsa2048' });
    const lines = leaf.keyPem.split('\n');
    for (const content of [
      leaf.keyPem,
      lines.at(15) ?? '',
      Buffer.from(lines.slice(1, -2).join(''), 'base64'),
    ]) {
      const search = new SecretSearch();
      search.addPrivateKey('key', leaf.keyPem);
      search.said('somewhere', content);
      assert.notDeepEqual(search.complaints(), []);
    }
    const search = new SecretSearch();
    search.addPrivateKey('key', leaf.keyPem);
    search.said('a certificate', leaf.certificatePem);
    assert.deepEqual(search.complaints(), []);
  });
});
