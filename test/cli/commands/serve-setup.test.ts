/** From a vault without administrators, to an administrator's session, with the real executable over HTTP. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { outside } from '../../harness/database/outside-database.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import {
  cookieOf,
  fromPage,
  goodPassword,
  otherPassword,
  pageWith,
  signIn,
} from '../../harness/http/sign-in-fixtures.ts';
import { type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const askOf = ({ url }: RunningVault) => ({
  get: (path: string, _key?: string, init: RequestInit = {}) => fetch(new URL(path, url), init),
});

/** The token of a new link, as the command prints it. */
async function tokenOf(data: string, url: string, ...more: string[]): Promise<string> {
  const { code, stdout, stderr } = await vault(['admin', 'setup-link', '--data-dir', data, ...more]);
  assert.equal(code, 0, stderr);
  const [, base, token = ''] = /^(\S+)\/setup#token=([\w-]{43})\n$/.exec(stdout) ?? [];
  assert.equal(base, url);
  return token;
}

/** What the server says about administrators once it has said everything else about its start. */
async function invitationOf(server: RunningVault): Promise<string | undefined> {
  // It was written before the line that says where the server listens, but comes through another pipe.
  await askOf(server).get('/api/v1/health');
  assert(!server.log().includes('token'));
  return /^No administrator yet\. (.*\n.*)$/m.exec(server.log())?.[1];
}

test('without a terminal, serve prints the setup-link command; only the latest link works, and only once', async (t) => {
  const data = tempDir(t);
  const old = await serve(t, data).then(async (first) => {
    assert.equal(
      await invitationOf(first),
      `To create one, print a setup link:\n  vault admin setup-link --data-dir ${data}`,
    );
    const token = await tokenOf(data, first.url);
    await first.end();
    return token;
  });
  const server = await serve(t, data, { args: ['--log-level', 'debug'] });
  const token = await tokenOf(data, server.url, '--url', server.url);
  assert(token !== old);
  const { get } = askOf(server);
  const setUp = (text: string) =>
    get('/api/v1/setup', undefined, fromPage('POST', { token: text, name: 'alice', password: goodPassword }));
  assert.equal((await setUp(old)).status, 403);
  const done = await setUp(token);
  assert.equal(done.status, 201);
  assert.equal((await setUp(token)).status, 403);
  assert.equal((await pageWith({ get }, cookieOf(done)).send('GET', '/api/v1/session')).status, 200);
  await server.end();
  const log = server.log().replace(`#token=${token}`, '');
  assert(!log.includes(token) && !log.includes(goodPassword) && !log.includes(cookieOf(done)));
  const again = await serve(t, data);
  assert.equal(await invitationOf(again), undefined);
  const refused = await vault(['admin', 'setup-link', '--data-dir', data]);
  assert.deepEqual([refused.code, refused.stdout], [1, '']);
  assert.match(refused.stderr, /^vault: the vault already has an administrator\n/);
  const actors = ['setup_link.create', 'administrator.create'].map((action) =>
    eventsOf(data, action).map(({ actor, resource }) => [actor, resource]),
  );
  assert.deepEqual(actors, [Array(2).fill(['local-cli', 'setup']), [['admin:alice', 'administrator:alice']]]);
});

test('the setup link begins with the public URL, and an HTTPS URL makes the session cookie Secure', async (t) => {
  const url = 'https://vault.example.test';
  const data = tempDir(t);
  const environment = { VAULT_PUBLIC_URL: url };
  const server = await serve(t, data, { environment });
  writeFileSync(join(data, 'vault.yaml'), `public_url: ${url}\n`);
  const token = await tokenOf(data, url);
  const init = fromPage('POST', { token, name: 'alice', password: goodPassword });
  const response = await askOf(server).get('/api/v1/setup', undefined, init);
  assert.match(response.headers.getSetCookie()[0] ?? '', /^__Host-vault_session=\S+; .*; Secure$/);
});

test('an administrator signs in and deletes ACME accounts until reset-password or admin delete ends the session', async (t) => {
  const data = tempDir(t);
  const words = (...rest: string[]) => ['admin', ...rest, '--data-dir', data];
  const made = await vault(words('create', '--name', 'alice', '--password-stdin'), { input: goodPassword });
  assert.equal(made.code, 0, made.stderr);
  const server = await serve(t, data);
  assert.equal(await invitationOf(server), undefined);
  outside(data, (db) =>
    db.exec(`insert into acme_accounts (issuer, directory_url, status, sealed_private_key, created_at)
             values ('gone', 'https://ca.example.test/directory', 'valid', x'00', 0)`),
  );
  const page = await signIn(askOf(server), 'alice');
  const list = (await (await page.send('GET', '/api/v1/acme-accounts')).json()) as object[];
  assert.deepEqual(
    list.map((account) => [(account as { id: string }).id, (account as { current: boolean }).current]),
    [['1', false]],
  );
  assert.equal((await page.send('DELETE', '/api/v1/acme-accounts/1')).status, 204);
  assert.deepEqual(await (await page.send('GET', '/api/v1/acme-accounts')).json(), []);

  const reset = await vault(words('reset-password', '--name', 'alice', '--password-stdin'), {
    input: otherPassword,
  });
  assert.equal(reset.stderr, 'Changed the password of alice; ended 1 session.\n');
  assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
  const after = await signIn(askOf(server), 'alice', otherPassword);
  assert.equal((await vault(words('delete', '--name', 'alice'))).code, 0);
  assert.equal((await after.send('GET', '/api/v1/acme-accounts')).status, 403);
});

test('invalid session lengths are rejected, and VAULT_SESSION_LIFETIME sets Max-Age of the cookie', async (t) => {
  for (const [option, value] of [
    ['--session-idle', '4m'],
    ['--session-lifetime', '31d'],
    ['--session-lifetime', 'soon'],
  ] as const) {
    const outcome = await vault(['serve', '--data-dir', tempDir(t), option, value]);
    assert.equal(outcome.code, 1);
    assert.match(outcome.stderr, new RegExp(`vault: ${option}: "${value}" is not a valid session length`));
  }
  const data = tempDir(t);
  const server = await serve(t, data, {
    args: ['--session-idle', '5m'],
    environment: { VAULT_SESSION_LIFETIME: '2h' },
  });
  const init = fromPage('POST', {
    token: await tokenOf(data, server.url),
    name: 'alice',
    password: goodPassword,
  });
  const response = await askOf(server).get('/api/v1/setup', undefined, init);
  assert.match(response.headers.getSetCookie()[0] ?? '', /Max-Age=7200;/);
});
