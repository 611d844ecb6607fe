/** `vault endpoint list` and `check`: what TLS servers on loopback serve, with the exit code that scripts read. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day, hour } from '../../../../src/base/duration.ts';
import { realWorld } from '../../../../src/base/world.ts';
import { endpointStates } from '../../../../src/domain/endpoints/endpoint-state.ts';
import { tlsServer } from '../../../harness/acme/validation-fixtures.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { giveVersion } from '../../../harness/issuance/renewal-fixtures.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { freePort } from '../../../harness/processes/port.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { testVault } from '../../../harness/test-vault.ts';

const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z`;

/** A vault with the certificates web and mail, and servers that serve what it exported. */
async function watched(t: TestContext) {
  const line = commandLine(t);
  for (const name of ['web', 'mail'])
    await line.done(
      ...commandWords(`certificate create --name ${name} --domain ${name}.example.test --label team=${name}`),
    );
  /** Starts a server with the current version of a certificate. */
  const served = async (certificate: string) => {
    const out = join(tempDir(t), 'tls');
    await line.done('certificate', 'export', '--name', certificate, '--out', out);
    const [cert, key] = ['fullchain.crt', 'private.key'].map((name) => readFileSync(join(out, name)));
    assert(cert && key);
    const { port, names } = await tlsServer(t, { cert, key });
    const { fingerprint256 } = new X509Certificate(cert);
    const fingerprint = fingerprint256.replaceAll(':', '').toLowerCase();
    return { address: `127.0.0.1:${port}`, names, fingerprint };
  };
  const endpoint = (words: string) => line.run('endpoint', ...commandWords(words));
  const check = (words = '') => endpoint(`check ${words} --endpoint-allow 127.0.0.1`);
  const add = (words: string) => line.done('endpoint', 'add', ...commandWords(words));
  return { ...line, served, endpoint, check, add };
}

/** The JSON of a list, by address. */
function rowsOf(stdout: string): Record<string, unknown>[] {
  return JSON.parse(stdout);
}

test('a check prints what each server serves, and a list prints the same afterwards; both exit with 0 if all are current', async (t) => {
  const { served, endpoint, check, add } = await watched(t);
  const none = { code: 0, stdout: '', stderr: 'No endpoints yet.\n  Try: vault endpoint add --help\n' };
  assert.deepEqual(await endpoint('list'), none);
  assert.deepEqual(await check(), none);
  assert.deepEqual((await endpoint('list --json')).stdout, '[]\n');
  const { address, names, fingerprint } = await served('web');
  await add(`${address} --certificate web`);
  const before = await endpoint('list');
  assert.deepEqual([before.code, before.stderr], [1, 'vault: 1 of 1 endpoints not current: 1 unchecked\n']);
  assert.match(before.stdout, / unchecked +- +- +not checked yet\n$/);
  const now = await check(address);
  assert.deepEqual([now.code, now.stderr], [0, '']);
  assert.match(
    now.stdout,
    new RegExp(
      '^ADDRESS +SERVER NAME +CERTIFICATE +STATE +EXPIRES +CHECKED +REASON\n' +
        `${address} +web.example.test +web +current +${time} +${time} +-\n$`,
    ),
  );
  assert.deepEqual(names, ['web.example.test']);
  assert.deepEqual(await endpoint('list'), now);
  const { code, stdout } = await endpoint('list --json');
  const [row, ...others] = rowsOf(stdout);
  assert.deepEqual([code, others], [0, []]);
  assert.match(String(row?.checked_at), new RegExp(`^${time}$`));
  assert.deepEqual(Object.entries({ ...row, checked_at: '' }), [
    ['address', address],
    ['certificate', 'web'],
    ['state', 'current'],
    ['fingerprint_sha256', fingerprint],
    ['checked_at', ''],
  ]);
});

test('a server that still serves the older version is current while clients install, and outdated afterwards', async (t) => {
  const { data, done, served, endpoint, check, add } = await watched(t);
  const old = await served('web');
  await add(`${old.address} --certificate web`);
  const { vault: opened, close } = await testVault(t, { dataDir: data, world: realWorld });
  await giveVersion(opened, 'web');
  await close();
  assert.equal((await check()).code, 0);
  outside(data, (db) =>
    db
      .prepare('update certificate_versions set created_at = created_at - ? where version = 2')
      .run(day + hour),
  );
  const { code, stdout, stderr } = await endpoint('list --certificate web');
  assert.deepEqual([code, stderr], [1, 'vault: 1 of 1 endpoints not current: 1 outdated\n']);
  assert.match(stdout, / outdated .* version 1 instead of 2\n$/);
  const json = await check('--state outdated --json');
  assert.equal(json.code, 1);
  assert.deepEqual(
    rowsOf(json.stdout).map(({ state, fingerprint_sha256: its }) => [state, its]),
    [['outdated', old.fingerprint]],
  );
  const current = await served('web');
  await done('endpoint', 'remove', old.address);
  await add(`${current.address} --certificate web`);
  assert.equal((await check()).code, 0);
});

test('other certificates, untrusted ones and closed ports have states of their own, counted in the error', async (t) => {
  const { served, check, add, endpoint } = await watched(t);
  const [mail, web] = [await served('mail'), await served('web')];
  const closed = `127.0.0.1:${await freePort()}`;
  await add(`${mail.address} --certificate web --server-name mail.example.test`);
  await add(`${web.address} --server-name web.example.test --trust public`);
  await add(`${web.address} --server-name none --trust private-ca`);
  await add(`${closed} --certificate mail`);
  const { code, stdout, stderr } = await check();
  assert.deepEqual(
    [code, stderr],
    [1, 'vault: 4 of 4 endpoints not current: 1 unreachable, 1 unknown, 2 untrusted\n'],
  );
  const line = (start: string) => stdout.split('\n').find((text) => text.startsWith(start)) ?? '';
  assert.match(
    line(`${mail.address} `),
    / mail\.example\.test +web +unknown .* not a version of certificate web$/,
  );
  assert.match(line(`${closed} `), / mail\.example\.test +mail +unreachable +- .* connection refused$/);
  assert.match(stdout, new RegExp(`^${web.address} +none +- +untrusted .* [^\n]*127\\.0\\.0\\.1`, 'm'));
  assert.match(stdout, new RegExp(`^${web.address} +web\\.example\\.test +- +untrusted `, 'm'));
  const listed = await endpoint('list --state unknown --json');
  assert.deepEqual(
    rowsOf(listed.stdout).map(({ certificate, fingerprint_sha256: its }) => [certificate, its]),
    [['web', mail.fingerprint]],
  );
});

test('only endpoints that the options select are checked', async (t) => {
  const { served, check, add, endpoint } = await watched(t);
  const [web, mail] = [await served('web'), await served('mail')];
  await add(`${web.address} --certificate web`);
  await add(`${mail.address} --certificate mail`);
  const unchecked = async () =>
    rowsOf((await endpoint('list --state unchecked --json')).stdout).map(({ certificate }) => certificate);
  const none = await check('--state outdated');
  assert.deepEqual(none, { code: 0, stdout: '', stderr: 'No matching endpoints.\n' });
  assert.equal((await check('--label team=db')).stderr, 'No matching endpoints.\n');
  const other = await check('127.0.0.1:9');
  assert.deepEqual([other.code, other.stdout], [1, '']);
  assert.match(other.stderr, /^vault: no endpoint 127\.0\.0\.1:9\n/);
  assert.equal((await unchecked()).length, 2);
  assert.equal((await check('--label team=web')).code, 0);
  assert.deepEqual(await unchecked(), ['mail']);
  const own = await check('--certificate mail --json');
  assert.deepEqual(
    rowsOf(own.stdout).map(({ address }) => address),
    [mail.address],
  );
  assert.deepEqual([web.names.length, mail.names.length], [1, 1]);
});

test('loopback addresses are checked only if --endpoint-allow permits them, and forbidden networks never', async (t) => {
  const { served, check, add, endpoint } = await watched(t);
  const { address, names } = await served('web');
  await add(`${address} --certificate web`);
  const setting = `allow it with --endpoint-allow ${address} (in vault.yaml: endpoint_allow: "${address}")`;
  for (const words of ['check', 'check --endpoint-allow 127.0.0.2', 'check --endpoint-allow none']) {
    const { code, stdout } = await endpoint(words);
    assert.equal(code, 1, words);
    assert.ok(stdout.includes(`127.0.0.1 is a loopback address; ${setting}`), stdout);
  }
  await add('192.0.2.1 --certificate web');
  const { stdout } = await endpoint('check 192.0.2.1 --endpoint-forbid 198.51.100.0/24,192.0.2.0/28');
  assert.match(stdout, / 192\.0\.2\.1 is an address in a network that a setting forbids; /);
  assert.deepEqual(names, []);
  assert.equal((await check(address)).code, 0);
  for (const words of [
    '--endpoint-allow www.test',
    '--endpoint-forbid 192.0.2.0/33',
    '--endpoint-forbid all',
  ])
    assert.match((await endpoint(`check ${words}`)).stderr, /^vault: --endpoint-(allow|forbid): "/, words);
});

test('several endpoints are checked at a time, and the process listens for signals once', async (t) => {
  const { data, check, add } = await watched(t);
  await add('192.0.2.1:1 --server-name none');
  outside(data, (db) => {
    const columns = 'host, server_name, trust, check_every, created_at, next_check_at';
    const more = db.prepare(
      `insert into endpoints (port, ${columns}) select port + ?, ${columns} from endpoints where port = 1`,
    );
    for (let port = 1; port < 20; port += 1) more.run(port);
  });
  const listeners = () => process.listenerCount('SIGTERM');
  const before = listeners();
  const { stderr } = await check('--endpoint-forbid 192.0.2.0/24');
  assert.equal(stderr, 'vault: 20 of 20 endpoints not current: 20 unreachable\n');
  assert.ok(listeners() <= before + 1, `${listeners() - before} new listeners`);
});

test('at a server, its own settings allow addresses, and those of the command line are misuse', async (t) => {
  const { data, done, served, add } = await watched(t);
  const { address } = await served('web');
  await add(`${address} --certificate web`);
  const key = await done('api-key', 'create', '--name', 'operator', '--role', 'operator');
  const { url } = await serve(t, data, { args: ['--endpoint-allow', '127.0.0.1'] });
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, key.stdout, { mode: 0o600 });
  const environment = { CERTVAULT_SERVER: url, CERTVAULT_TOKEN_FILE: tokenFile };
  const there = (words: string) => vault(commandWords(`endpoint ${words}`), { environment });
  const { code, stdout } = await there(`check ${address}`);
  assert.equal(code, 0, stdout);
  const settings = ['check --endpoint-allow 127.0.0.2', 'check --endpoint-forbid none'];
  for (const words of [...settings, 'scan 10.0.0.0/24 --endpoint-forbid 10.0.0.1']) {
    const misuse = await there(words);
    assert.deepEqual([misuse.code, misuse.stdout], [2, '']);
    assert.match(
      misuse.stderr,
      /^vault: --endpoint-allow, --endpoint-forbid and --server exclude each other\n/,
    );
  }
});

test('an unknown state and two filters that exclude each other are misuse', async (t) => {
  const { refused } = commandLine(t);
  for (const words of ['list', 'check']) {
    const unknown = new RegExp(
      `^vault: --state: unknown state "lost"\n {2}Use one of ${endpointStates.join(', ')}\\.\n`,
    );
    await refused(['endpoint', words, '--state', 'lost'], unknown, 2);
    const both = ['--certificate', 'web', '--label', 'team=web'];
    await refused(['endpoint', words, ...both], /^vault: --certificate and --label exclude each other\n/, 2);
  }
});
