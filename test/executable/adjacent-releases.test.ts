/**
 * An upgrade of several nodes, one after the other: the first node of the next release migrates the database, and those
 * of this release, by the built executable, go on serving until they are replaced.
 */
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { eventually } from '../harness/eventually.ts';
import { cookieOf, fromPage, goodPassword } from '../harness/http/sign-in-fixtures.ts';
import { postgresServer } from '../harness/postgres/postgres.ts';
import { type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { nextMigration, nextRelease } from './next-release.ts';

const elected = 'node elected to run background jobs';
const leads = ({ log }: RunningVault) => log().includes(elected) || undefined;

/** A node of this release that leads, and what it takes to start one of the next. */
async function upgrade(t: TestContext) {
  const server = await postgresServer();
  const database = await server.createDatabase();
  const environment = { CERTVAULT_DATABASE: database };
  const { version, program } = nextRelease(t);
  const [ownData, nextData] = [join(tempDir(t), 'data'), join(tempDir(t), 'data')];
  const own = await serve(t, ownData, { environment });
  await eventually('the node of this release leads', () => leads(own));
  mkdirSync(nextData, { mode: 0o700 });
  copyFileSync(join(ownData, 'master.key'), join(nextData, 'master.key'));
  chmodSync(join(nextData, 'master.key'), 0o600);
  const done = async (outcome: ReturnType<typeof vault>) => {
    const { code, stdout, stderr } = await outcome;
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  const byOwn = (args: readonly string[], input = '') =>
    vault([...args, '--data-dir', ownData], { environment, input });
  const byNext = (args: readonly string[]) =>
    vault([...args, '--data-dir', nextData], { environment, program });
  const name = new URL(database).pathname.slice(1);
  return {
    own,
    version,
    startNext: () => serve(t, nextData, { environment, program }),
    restartOwn: () => serve(t, ownData, { environment }),
    done,
    byOwn,
    byNext,
    query: (sql: string) => server.query(sql, [], name),
  };
}

/** Status and version of a download, or of a poll if the client has something. */
async function download({ url }: RunningVault, key: string, etag = ''): Promise<string> {
  const headers = { Authorization: `Bearer ${key}`, 'If-None-Match': etag };
  const answer = await fetch(`${url}/api/v1/certificates/web/fullchain.crt`, { headers });
  await answer.arrayBuffer();
  return [answer.status, answer.headers.get('certificate-version')].join(' ').trim();
}

const ask = ({ url }: RunningVault, path: string, init?: RequestInit) => fetch(`${url}/api/v1${path}`, init);

test('a node of this release keeps serving after a node of the next release migrates the database', async (t) => {
  const { own, version, startNext, restartOwn, done, byOwn, byNext, query } = await upgrade(t);
  const scopes = ['certificates:read', 'renewals:trigger'];
  const create = (name: string) => [
    ...['api-key', 'create', '--name', name, '--certificate=web'],
    ...scopes.map((scope) => `--scope=${scope}`),
  ];
  await done(byOwn(['certificate', 'create', '--name=web', '--domain=web.example.test']));
  const key = await done(byOwn(create('first')));
  const login = { name: 'ada', password: goodPassword };
  await done(byOwn(['admin', 'create', '--name', login.name, '--password-stdin'], login.password));
  /** Everything a person does at the node of this release; often enough that its statements are prepared. */
  const workAtOwn = async (round: string) => {
    const signedIn = await ask(own, '/session', fromPage('POST', login));
    assert.equal(signedIn.status, 201, own.log());
    const send = async (method: string, path: string, body?: unknown) => {
      const answer = await ask(own, path, fromPage(method, body, cookieOf(signedIn)));
      const text = await answer.text();
      assert(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
      return text === '' ? {} : JSON.parse(text);
    };
    const brief = `brief-${round}`;
    await send('POST', '/certificates', { name: brief, domains: [`${brief}.test`] });
    for (const path of ['/certificates', '/api-keys', '/audit-events', '/issuers', `/certificates/${brief}`])
      await send('GET', path);
    await send('DELETE', `/certificates/${brief}`);
    const made = await send('POST', '/api-keys', { name: round, scopes, certificates: ['web'] });
    assert.equal((await download(own, made.key)).slice(0, 3), '200');
    await send('POST', `/api-keys/${made.id}/revoke`);
    assert.equal(await download(own, made.key), '401');
    await send('DELETE', '/session');
    return made.key as string;
  };
  for (const round of ['a', 'b', 'c', 'd']) await workAtOwn(round);
  assert.equal(await download(own, key), '200 1');

  const next = await startNext();
  const [{ name: newest = '' } = {}] = await query(
    'select name from kysely_migration order by name desc limit 1',
  );
  assert.equal(newest, nextMigration);
  assert.deepEqual([await download(own, key), await download(next, key)], ['200 1', '200 1']);
  for (const round of ['e', 'f', 'g']) assert.equal(await download(next, await workAtOwn(round)), '401');
  // What the next release does counts at the node of this one at once.
  const ofNext = await done(byNext(create('of-next')));
  assert.deepEqual([await download(own, ofNext), await download(next, ofNext)], ['200 1', '200 1']);
  await done(byNext(['api-key', 'revoke', 'of-next']));
  assert.deepEqual([await download(own, ofNext), await download(next, ofNext)], ['401', '401']);
  // The node of this release still runs the jobs.
  const renew = { method: 'POST', headers: { Authorization: `Bearer ${key}` } };
  assert.equal((await ask(next, '/certificates/web/renew', renew)).status, 202);
  await eventually('it is renewed', async () => ((await download(next, key)) === '200 2' ? true : undefined));
  assert.equal(await download(own, key), '200 2');
  assert.equal(leads(next), undefined);
  const { stdout: doctor } = await byNext(['doctor', '--offline']);
  assert.match(doctor, new RegExp(`2 nodes with versions ${manifest.version} and ${version}: `));

  // An executable of this release does not open the database any more.
  const refused = await byOwn(['api-key', 'list']);
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    new RegExp(`was written by a newer vault \\(its schema has ${nextMigration}\\)`),
  );
  assert.equal((await own.end()).code, 0, own.log());
  await assert.rejects(restartOwn(), /was written by a newer vault/);
  await eventually('the node of the next release leads', () => leads(next));
  assert.equal((await ask(next, '/certificates/web/renew', renew)).status, 202);
  await eventually('it is renewed again', async () =>
    (await download(next, key)) === '200 3' ? true : undefined,
  );
  assert.match(await done(byNext(['audit', 'verify'])), /is intact/);
});
