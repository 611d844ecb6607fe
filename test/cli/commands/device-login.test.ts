/** `vault login --oidc`: a person signs in at the provider of a vault elsewhere, works there, and signs out. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../harness/eventually.ts';
import { writeOidcSettings } from '../../harness/oidc/oidc-settings-file.ts';
import { type ScriptedProvider, scriptedProvider } from '../../harness/oidc/scripted-provider.ts';
import { commandLine, commandWords } from '../../harness/processes/command-line.ts';
import { freePort } from '../../harness/processes/port.ts';
import { type Outcome, type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

type Site = {
  readonly provider: ScriptedProvider;
  readonly url: string;
  readonly file: string;
  readonly server: RunningVault;
  readonly run: (words: string) => Promise<Outcome>;
};

/** A served vault with a provider, and a user with an empty configuration directory. */
async function site(t: TestContext, more: Readonly<Record<string, unknown>> = {}): Promise<Site> {
  const line = commandLine(t);
  await line.done('api-key', 'create', '--name=first', '--role=viewer');
  const provider = await scriptedProvider(t, Date.now);
  provider.device = { interval: 1 };
  const url = `http://127.0.0.1:${await freePort()}`;
  writeOidcSettings(line, { provider, url, more: { oidc_device_flow: true, ...more } });
  const server = await serve(t, line.data, { listen: new URL(url).host });
  const config = tempDir(t);
  const run = (words: string) => runIn(config, words);
  return { provider, url, server, file: join(config, 'certificate-vault', 'login.json'), run };
}

function runIn(config: string, words: string): Promise<Outcome> {
  return vault(commandWords(words), { environment: { XDG_CONFIG_HOME: config, HOME: config } });
}

const asked = ({ requests }: ScriptedProvider) => requests.filter((line) => line === 'POST /token').length;

test('a person signs in with a code, works with their role, and signs out', async (t) => {
  const { provider, url, file, server, run } = await site(t);
  const login = run(`login ${url} --oidc`);
  await eventually('the first request for the session', () => asked(provider) === 1);
  assert(!existsSync(file));
  provider.deviceState = 'confirmed';
  const { code, stdout, stderr } = await login;
  assert.equal(code, 0, stderr);
  assert.equal(stdout, '');
  const [instructions = '', result = ''] = stderr.split(/(?=^Signed in)/m);
  assert.match(
    instructions,
    new RegExp(
      `^Open this URL in any browser, and sign in at the identity provider\\.\n\n {2}${provider.issuer}/activate\\?user_code=ABCD-EFG1\n\nCheck that the page shows the code ABCD-EFG1\\. Never confirm a code that someone else sent you\\.\nWaiting until \\S+\\.\n$`,
    ),
  );
  assert.match(
    result,
    /^Signed in to http:\S+ as alice, with the role admin, until \S+Z\. The session is in \S+\.\n {2}Try: vault --server http:\S+ certificate list\n$/,
  );
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const token = /vs_[\w.-]+/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
  assert(token.length > 100 && !stderr.includes(token));
  const created = await run(`--server ${url} certificate create --name web --domain www.example.test`);
  assert.equal(created.code, 0, created.stderr);
  const audit = await run(`--server ${url} audit list --json`);
  const events = JSON.parse(audit.stdout) as { actor: string; action: string; detail: unknown }[];
  assert(events.some(({ actor, action }) => actor === 'admin:alice' && action === 'certificate.create'));
  assert.deepEqual(events.find(({ action }) => action === 'session.create')?.detail, {
    method: 'device_flow',
  });
  const logout = await run(`logout ${url}`);
  assert.deepEqual([logout.code, logout.stderr], [0, `Signed out of ${url}.\n`]);
  assert(!readFileSync(file, 'utf8').includes('vs_'));
  const after = await fetch(`${url}/api/v1/whoami`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(after.status, 401);
  await server.end();
  assert.doesNotMatch(server.log(), /vs_|device-code/);
});

test('a person who declines, or has no role, stores nothing', async (t) => {
  const { provider, url, file, run } = await site(t);
  provider.deviceState = 'access_denied';
  const declined = await run(`login ${url} --oidc`);
  assert.equal(declined.code, 1);
  assert.match(declined.stderr, /\nvault: The sign-in was declined at the identity provider\.\n$/);
  provider.deviceState = 'expired_token';
  const late = await run(`login ${url} --oidc`);
  assert.match(late.stderr, /\nvault: The sign-in has expired or was used; begin again\.\n$/);
  provider.deviceState = 'confirmed';
  provider.claims = { groups: ['strangers'] };
  provider.device = { interval: 1, verification_uri_complete: undefined };
  const unknown = await run(`login ${url} --oidc`);
  assert.match(unknown.stderr, /\nEnter the code ABCD-EFG3 there\. /);
  assert.match(unknown.stderr, /\nvault: The identity provider authenticated you, but none of your groups /);
  assert(!existsSync(file));
});

test('a program that the provider or the vault slows down goes on until the person has confirmed', async (t) => {
  const { provider, url, run } = await site(t);
  provider.deviceState = 'slow_down';
  const login = run(`login ${url} --oidc`);
  await eventually('the first request for the session', () => asked(provider) === 1);
  provider.deviceState = 'confirmed';
  const { code, stderr } = await login;
  assert.equal(code, 0, stderr);
  assert.equal(asked(provider), 2);
});

test('a session that has ended says how to sign in, and logout still deletes it', async (t) => {
  const { provider, url, file, run, server } = await site(t);
  provider.deviceState = 'confirmed';
  assert.equal((await run(`login ${url} --oidc`)).code, 0);
  const token = /vs_[\w.-]+/.exec(readFileSync(file, 'utf8'))?.[0] ?? '';
  const headers = { Authorization: `Bearer ${token}` };
  assert.equal((await fetch(`${url}/api/v1/session`, { method: 'DELETE', headers })).status, 204);
  const { code, stderr } = await run(`--server ${url} api-key list`);
  assert.deepEqual(
    [code, stderr],
    [1, 'vault: The session has expired or was ended.\n  Sign in again: vault login --oidc\n'],
  );
  assert.deepEqual((await run(`logout ${url}`)).stderr, `Signed out of ${url}.\n`);
  assert.equal((await run(`login ${url} --oidc`)).code, 0);
  await server.end();
  const offline = await run(`logout ${url}`);
  assert.equal(offline.code, 1);
  assert.match(
    offline.stderr,
    /^vault: deleted the session from this machine, but could not sign out of http:\S+: .+\n {2}The session expires after 30 minutes/,
  );
  assert(!readFileSync(file, 'utf8').includes('vs_'));
});

test('a vault that does not allow it refuses the sign-in, and --key-stdin excludes it', async (t) => {
  const { url, run, provider } = await site(t, { oidc_device_flow: false });
  const off = await run(`login ${url} --oidc`);
  assert.equal(off.code, 1);
  assert.match(
    off.stderr,
    /^vault: Sign-in by OpenID Connect on the command line is not available\. .*\(oidc-device-flow\)\.\n {2}Use an API key: vault login\n$/,
  );
  assert.deepEqual(provider.requests, []);
  const both = await run(`login ${url} --oidc --key-stdin`);
  assert.deepEqual(
    [both.code, both.stderr],
    [2, 'vault: --oidc and --key-stdin exclude each other\n  Use one of them.\n'],
  );
});

test('a session is stored with how its server is trusted, and logout trusts it the same way', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=own', '--domain=127.0.0.1', '--wait');
  const [root] = JSON.parse((await line.done('ca', 'show', '--json')).stdout) as { readonly pem: string }[];
  const provider = await scriptedProvider(t, Date.now);
  provider.device = { interval: 1 };
  provider.deviceState = 'confirmed';
  const host = `127.0.0.1:${await freePort()}`;
  const url = `https://${host}`;
  writeOidcSettings(line, { provider, url, more: { oidc_device_flow: true } });
  const server = await serve(t, line.data, { listen: host, args: ['--tls-certificate', 'own'] });
  const config = tempDir(t);
  const rootFile = line.file(root?.pem ?? '');
  const untrusted = await runIn(config, `login ${url} --oidc`);
  assert.match(untrusted.stderr, /^vault: the certificate of \S+ is not trusted: /);
  assert.deepEqual(provider.requests, []);
  const login = await runIn(config, `--server ${url} --ca-file ${rootFile} login --oidc`);
  assert.equal(login.code, 0, login.stderr);
  const listed = await runIn(config, `--server ${url} certificate list`);
  assert.match(listed.stdout, /^own +valid /m, listed.stderr);
  const logout = await runIn(config, `logout ${url}`);
  assert.deepEqual([logout.code, logout.stderr], [0, `Signed out of ${url}.\n`]);
  await server.end();
  assert.match(server.log(), /"method":"DELETE","route":"\/api\/v1\/session"/);
});

test('a malicious response neither reaches the terminal nor is stored', async (t) => {
  const begun = {
    handle: 'a',
    user_code: 'A\u001b[2J',
    verification_uri: 'https://x\u001b[2J',
    interval: -5,
    expires_at: '\u009b2J',
  };
  const answer: RequestListener = ({ url }, response) => {
    const finished = { token: 'vk_x\u001b', name: 'a', role: 'admin', expires_at: 'b' };
    response.writeHead(201, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(url?.endsWith('/token') ? finished : begun));
  };
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const config = tempDir(t);
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await runIn(config, `login http://127.0.0.1:${port} --oidc`);
  assert.equal(code, 1);
  assert.match(stderr, /\nvault: the server sent no session\n/);
  assert(!stderr.includes('\u001b') && !stderr.includes('\u009b'), stderr);
  assert(!existsSync(join(config, 'certificate-vault')));
});
