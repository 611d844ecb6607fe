/** `vault serve --workers`: how several processes begin, end and follow each other as one vault. */

import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { restartDelay } from '../../../src/cli/workers/workers.ts';
import type { CertificateView, RenewalView } from '../../../src/domain/certificates/certificate-views.ts';
import { eventually } from '../../harness/eventually.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { serve, vault } from '../../harness/vault-process.ts';
import {
  agentsToAll,
  ask,
  childrenOf,
  type WorkersVault,
  workersVault,
} from '../../harness/workers-vault.ts';

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // There is no such process any more.
    return false;
  }
}

/** The worker that does what one process does for all, as it said in the log. */
function pidWithJobs({ server }: Pick<WorkersVault, 'server'>): number {
  const lines = server.log().split('\n');
  const line = lines.findLast((text) => text.includes('elected to run background jobs')) ?? '{}';
  const { pid } = JSON.parse(line) as { pid: number };
  return pid;
}

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

test('several workers are one vault: one line, one invitation, all ready, and nothing left after SIGTERM', async (t) => {
  const server = await serve(t, join(tempDir(t), 'data'), { args: ['--workers', '3'] });
  const workers = childrenOf(server.pid);
  assert.equal(workers.length, 3);
  for (const agent of await agentsToAll(t, server.url, 3)) {
    const { status, body } = await ask(`${server.url}/api/v1/ready`, { agent });
    assert.equal(status, 200, body);
  }
  assert.equal(server.log().match(/ vault admin setup-link /g)?.length, 1);
  assert.equal(server.log().match(/vault created/g)?.length, 1);
  assert.equal(server.log().match(/elected to run background jobs/g)?.length, 1);
  assert.deepEqual(await server.end(), { code: 0, signal: null });
  assert.deepEqual(workers.filter(isAlive), []);
  assert.doesNotMatch(server.log(), /"level":"(warn|error)"/);
});

for (const [what, spoil, words] of [
  ['the wrong master key', wrongMasterKey, /is not the master key of the vault/],
  ['an address that is taken', takenAddress, /cannot listen on .*the port is already in use/],
  ['a certificate that is none', noCertificate, /cannot read the HTTPS file /],
] as const) {
  test(`workers that cannot begin, for ${what}, end the vault with one message and exit code 1`, async (t) => {
    const dir = join(tempDir(t), 'data');
    await vault(['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', dir]);
    const args = ['serve', '--data-dir', dir, ...(await spoil(t, dir))];
    const alone = await vault(args);
    const together = await vault([...args, '--workers', '3']);
    assert.match(alone.stderr, words);
    assert.deepEqual([together.code, together.stdout], [1, '']);
    const said = together.stderr.split('\n').filter((line) => !line.startsWith('{'));
    assert.deepEqual(
      said,
      alone.stderr.split('\n').filter((line) => !line.startsWith('{')),
    );
  });
}

async function wrongMasterKey(t: TestContext, dir: string): Promise<string[]> {
  const other = join(tempDir(t), 'data');
  await vault(['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', other]);
  cpSync(join(other, 'master.key'), join(dir, 'master.key'));
  return ['--listen', '127.0.0.1:0'];
}

async function takenAddress(t: TestContext): Promise<string[]> {
  const other = createServer();
  t.after(() => other.close());
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as { port: number };
  return ['--listen', `127.0.0.1:${port}`];
}

async function noCertificate(t: TestContext): Promise<string[]> {
  const file = join(tempDir(t), 'key.pem');
  writeFileSync(file, '', { mode: 0o600 });
  return ['--listen', '127.0.0.1:0', '--tls-cert-file', '/nowhere', '--tls-key-file', file];
}

test('workers are killed under load: each full answer has its audit event, and others take their places and the jobs', async (t) => {
  const { server, key, query } = await workersVault(t);
  const path = `${server.url}/api/v1/certificates/web`;
  let over = false;
  let answered = 0;
  const load = Array.from({ length: 8 }, async () => {
    while (!over) {
      const answer = await ask(`${path}/private.key`, { headers: bearer(key) }).catch(() => undefined);
      if (answer === undefined) continue;
      assert.equal(answer.status, 200, answer.body);
      answered += 1;
    }
  });
  for (let kills = 0; kills < 6; kills += 1) {
    const before = answered;
    await eventually('answering', () => answered > before + 20);
    const [victim = 0] = kills % 2 === 0 ? [pidWithJobs({ server })] : childrenOf(server.pid);
    process.kill(victim, 'SIGKILL');
    await eventually('replaced', () => {
      const now = childrenOf(server.pid);
      return now.length === 2 && !now.includes(victim);
    });
  }
  over = true;
  await Promise.all(load);
  const [{ n } = { n: 0 }] = query<{ n: number }>(
    "select count(*) as n from audit_events where action = 'certificate.download'",
  );
  assert.ok(n >= answered, `${answered} answers, ${n} events`);
  assert.ok(n <= answered + 6 * 8, `${answered} answers, ${n} events`);
  // One worker runs renewals.
  const asked = await ask(`${path}/renew`, { method: 'POST', headers: bearer(key) });
  assert.equal(asked.status, 202);
  const { id } = JSON.parse(asked.body) as RenewalView;
  await eventually('renewed', async () => {
    const { body } = await ask(`${path}/renewals/${id}`, { headers: bearer(key) });
    return (JSON.parse(body) as RenewalView).status === 'succeeded';
  });
  const { body } = await ask(path, { headers: bearer(key) });
  assert.equal((JSON.parse(body) as CertificateView).current_version?.version, 2);
  assert.deepEqual(await server.end(), { code: 0, signal: null });
});

test('a worker that gets SIGTERM itself ends what it does and is replaced; the address stays when all are killed', async (t) => {
  const { server } = await workersVault(t);
  const [first = 0] = childrenOf(server.pid);
  process.kill(first, 'SIGTERM');
  await eventually('replaced', () => {
    const now = childrenOf(server.pid);
    return now.length === 2 && !now.includes(first);
  });
  await agentsToAll(t, server.url, 2);
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
  await eventually('there again', async () => {
    const answer = await ask(`${server.url}/api/v1/ready`).catch(() => undefined);
    return answer?.status === 200;
  });
  assert.deepEqual(await server.end(), { code: 0, signal: null });
});

test('workers do not outlive the process that started them', async (t) => {
  const { server } = await workersVault(t);
  const workers = childrenOf(server.pid);
  assert.deepEqual(await server.end('SIGKILL'), { code: null, signal: 'SIGKILL' });
  await eventually('gone', () => !workers.some(isAlive));
});

test('where no worker can serve any more the vault ends with the reason', async (t) => {
  const { server, dir } = await workersVault(t);
  await wrongMasterKey(t, dir);
  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
  await eventually('ended', () => !isAlive(server.pid));
  assert.match(
    server.log(),
    /\nvault: .* is not the master key of the vault in .*\n {2}Restore the right key/,
  );
});

test('a worker that dies young again and again is started later and later, but in a minute at the latest', () => {
  const pauses = [0, 1, 2, 3, 4, 7, 8, 1000].map(restartDelay);
  assert.deepEqual(pauses, [0, 0, 1000, 2000, 4000, 32_000, 60_000, 60_000]);
});
