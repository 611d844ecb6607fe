/**
 * Which of several real servers on one database runs the background jobs, by the built executable: one that stops hands
 * them over at once, one that hangs loses them and touches nothing when it wakes up, and a master key is not rotated
 * behind a node.
 */
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../harness/eventually.ts';
import { postgresServer } from '../harness/postgres/postgres.ts';
import { startRelay } from '../harness/postgres/relay.ts';
import { type Outcome, type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

type Node = RunningVault & { readonly keyFile: string };

const elected = 'node elected to run background jobs';
const leads = ({ log }: Node) => log().includes(elected);

/** Two servers, of which the first leads, and is connected to the database through a relay. */
async function cluster(t: TestContext) {
  const server = await postgresServer();
  const database = await server.createDatabase();
  const environment = { CERTVAULT_DATABASE: database };
  const relay = await startRelay(t, server.port);
  const relayed = database.replace(`:${server.port}/`, `:${relay.port}/`);
  assert.notEqual(relayed, database);
  const first = join(tempDir(t), 'data');
  const second = join(tempDir(t), 'data');
  const start = async (data: string, url = database): Promise<Node> => ({
    ...(await serve(t, data, { environment: { CERTVAULT_DATABASE: url } })),
    keyFile: join(data, 'master.key'),
  });
  const one = await start(first, relayed);
  await eventually('the first node leads', () => leads(one) || undefined);
  mkdirSync(second, { mode: 0o700 });
  copyFileSync(join(first, 'master.key'), join(second, 'master.key'));
  chmodSync(join(second, 'master.key'), 0o600);
  const two = await start(second);
  const run = (node: Node, ...args: string[]): Promise<Outcome> =>
    vault([...args, '--data-dir', join(node.keyFile, '..')], { environment });
  const done = async (node: Node, ...args: string[]) => {
    const { code, stdout, stderr } = await run(node, ...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const name = new URL(database).pathname.slice(1);
  const query = (sql: string) => server.query(sql, [], name);
  const renewals = async () => {
    const rows = await query('select status from renewals order by id');
    return rows.map(({ status }) => status);
  };
  /** Queues a renewal, which the leader runs. */
  const renew = async (node: Node, count: number) => {
    await done(node, 'certificate', 'renew', 'web');
    await eventually(
      `${count} renewals succeed`,
      async () => (await renewals()).filter((status) => status === 'succeeded').length === count || undefined,
    );
  };
  await done(one, 'certificate', 'create', '--name', 'web', '--domain', 'web.example.test');
  const ready = async ({ url }: Node) => (await fetch(`${url}/api/v1/ready`)).status;
  return { one, two, relay, run, done, query, renew, renewals, ready };
}

test('a node that stops hands over the lease of the background jobs immediately and deletes its record', async (t) => {
  const { one, two, query, renew, ready } = await cluster(t);
  await renew(two, 1);
  assert(!leads(two));
  await eventually('a node that does not lead is ready', async () => (await ready(two)) === 200 || undefined);
  const [{ expires_at: before = 0 } = {}] = await query('select expires_at from job_leases');
  assert.equal((await one.end()).code, 0, one.log());
  await eventually('the second node leads', () => leads(two) || undefined);
  const [{ fence, expires_at: expiresAt } = {}] = await query('select fence, expires_at from job_leases');
  assert.equal(Number(fence), 2);
  assert(Number(expiresAt) < Number(before) + 15_000 + 12_000, 'long before the lease expired');
  assert.equal((await query('select id from nodes')).length, 1);
  await renew(two, 2);
});

test('a node that hangs during a write loses leadership, and the write is never committed', async (t) => {
  const { one, two, relay, run, done, query, renew, renewals, ready } = await cluster(t);
  const scope = '--scope=certificates:read';
  const key = (await done(two, 'api-key', 'create', '--name=k', '--certificate=web', scope)).trim();
  const download = async () => {
    const headers = { Authorization: `Bearer ${key}` };
    const answer = await fetch(`${two.url}/api/v1/certificates/web/fullchain.crt`, { headers });
    await answer.arrayBuffer();
    return `${answer.status} ${answer.headers.get('certificate-version')}`;
  };
  const hung = async () => {
    const sql =
      "select 1 from pg_stat_activity where state = 'idle in transaction' and datname = current_database()";
    return (await query(sql)).length > 0 || undefined;
  };
  // The relay is in this process, so the node cannot have the answer to this statement before it stops.
  const inTransaction = relay.sent('insert into "certificate_versions"').then(() => {
    process.kill(one.pid, 'SIGSTOP');
  });
  await done(two, 'certificate', 'renew', 'web');
  await inTransaction;
  await eventually('the transaction of the hung node waits', hung);
  assert.equal(await download(), '200 1', 'downloads wait for no transaction');
  await eventually('the server has ended the transaction', async () => ((await hung()) ? undefined : true));
  await eventually('the second node leads', () => leads(two) || undefined);
  assert.deepEqual(await renewals(), ['running']);
  // As if the minute of its lease were over.
  await query('update renewals set lease_expires_at = 0');
  await eventually(
    'the second node has renewed it',
    async () => (await renewals())[0] === 'succeeded' || undefined,
  );
  assert.equal(await download(), '200 2');
  process.kill(one.pid, 'SIGCONT');
  await eventually('the first node stops its jobs', () => {
    return one.log().includes('stopping the background jobs of this node') || undefined;
  });
  await renew(one, 2);
  assert.deepEqual(await renewals(), ['succeeded', 'succeeded']);
  assert.equal(await download(), '200 3');
  const versions = await query('select version from certificate_versions order by version');
  assert.deepEqual(
    versions.map(({ version }) => Number(version)),
    [1, 2, 3],
  );
  assert.equal(Number((await query('select fence from job_leases'))[0]?.fence), 2);
  assert.equal(one.log().split(elected).length, 2, 'it was elected once');
  await eventually('it is ready again', async () => (await ready(one)) === 200 || undefined);
  assert.match(await done(one, 'audit', 'verify'), /is intact/);
  // Other findings, such as fsync of the server of tests, are not this test's.
  const { stdout: doctor } = await run(one, 'doctor', '--offline');
  assert.match(doctor, /nodes +2 nodes with version \S+: .*\(background jobs\)/);
});

test('master-key rotate fails until every node has the next key, and then every node serves private keys', async (t) => {
  const { one, two, run, done } = await cluster(t);
  const refused = await run(one, 'master-key', 'rotate');
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    new RegExp(`1 of 2 nodes do not have the next master key \\([0-9a-f]{16}\\): ${hostname()}\n`),
  );
  const next = `${one.keyFile}.next`;
  assert(existsSync(next) && refused.stderr.includes(next));
  copyFileSync(next, `${two.keyFile}.next`);
  await done(one, 'master-key', 'rotate');
  const key = (
    await done(two, ...['api-key', 'create', '--name=k', '--certificate=web', '--scope=private_keys:read'])
  ).trim();
  for (const { url } of [one, two]) {
    const headers = { Authorization: `Bearer ${key}` };
    const answer = await fetch(`${url}/api/v1/certificates/web/private.key`, { headers });
    assert.equal(answer.status, 200, await answer.text());
  }
});
