/**
 * A process is killed in the middle of an order. The next one, or its peer, resumes the same order at once, not when
 * the lease of the dead process expires; and no process takes a renewal from one that lives.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import type { AcmeKind, ScriptedAcme } from '../harness/ca/scripted-acme.ts';
import { eventually } from '../harness/eventually.ts';
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { type CommandLine, commandLineWithCa, commandWords } from '../harness/processes/command-line.ts';
import { fromExecutable, serve } from '../harness/processes/vault-process.ts';

type Row = {
  readonly id: number;
  readonly status: string;
  readonly order_url: string | null;
  readonly claims: number;
  readonly lease_owner: string | null;
  readonly lease_expires_at: number | null;
};

const create = commandWords('certificate create --name web --domain web.test --issuer ca');

function renewals({ data }: CommandLine): Row[] {
  const database = new BetterSqlite3(join(data, 'vault.db'), { timeout: 5000 });
  try {
    return database.prepare<[], Row>('select * from renewals order by id').all();
  } finally {
    database.close();
  }
}

const locksIn = ({ data }: CommandLine) => readdirSync(data).filter((name) => name.startsWith('vault.lock-'));

/**
 * Leaves the next request of this kind without an answer until the test ends, and notes when the one after it arrives,
 * which gets the usual answer.
 */
function holdFirst(t: TestContext, ca: ScriptedAcme, kind: AcmeKind) {
  const reached = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const again = Promise.withResolvers<number>();
  t.after(() => released.resolve());
  ca.override(
    kind,
    async (_, usual) => {
      reached.resolve();
      await released.promise;
      return usual();
    },
    (_, usual) => {
      again.resolve(Date.now());
      return usual();
    },
  );
  return { reached: reached.promise, release: released.resolve, again: again.promise };
}

/** Starts a command of the executable on the vault of the test. It is killed when the test ends. */
function begin(t: TestContext, { data }: CommandLine, args: readonly string[]) {
  const [program = ''] = fromExecutable;
  const child: ChildProcess = spawn(program, [...args, '--data-dir', data], {
    stdio: 'ignore',
    env: { ...process.env, VAULT_ALLOW_OUTBOUND: loopbackSetting },
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  t.after(() => child.kill('SIGKILL'));
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return { ended, kill };
}

/** The renewal was resumed while the lease of the dead process was valid, in its second claim, with the same order. */
async function assertResumed(
  line: CommandLine & { readonly ca: ScriptedAcme },
  { again }: { readonly again: Promise<number> },
  left: Row,
): Promise<void> {
  assert(left.order_url && left.lease_expires_at);
  assert.equal(left.status, 'running');
  const resumedAt = await again;
  assert(
    resumedAt < left.lease_expires_at,
    `resumed ${resumedAt - left.lease_expires_at} ms after the lease`,
  );
  const row = await eventually('the renewal has succeeded', () =>
    renewals(line).find(({ status }) => status === 'succeeded'),
  );
  assert.deepEqual([row.id, row.order_url, row.claims], [left.id, left.order_url, 2]);
  assert.equal(line.ca.kinds().filter((kind) => kind === 'newOrder').length, 1);
}

test('a server that starts after kill -9 resumes the order of the killed one before its lease expires', async (t) => {
  const line = await commandLineWithCa(t);
  const held = holdFirst(t, line.ca, 'finalize');
  const first = await serve(t, line.data);
  await line.done(...create);
  await held.reached;
  await first.end('SIGKILL');
  const [left] = renewals(line);
  assert(left);
  assert.equal(locksIn(line).length, 1);
  const second = await serve(t, line.data);
  await assertResumed(line, held, left);
  // The lock of the dead process is gone, and so is that of a process that stops.
  assert.equal(locksIn(line).length, 1);
  await second.end();
  assert.deepEqual(locksIn(line), []);
});

test('a server resumes the order of a command that was killed beside it', async (t) => {
  const line = await commandLineWithCa(t);
  const held = holdFirst(t, line.ca, 'finalize');
  const command = begin(t, line, [...create, '--wait']);
  await held.reached;
  await serve(t, line.data);
  const [left] = renewals(line);
  assert(left);
  await command.kill();
  await assertResumed(line, held, left);
});

test('a server does not take over the renewal of a command that is still running', async (t) => {
  const line = await commandLineWithCa(t);
  const held = holdFirst(t, line.ca, 'finalize');
  const command = begin(t, line, [...create, '--wait']);
  await held.reached;
  const [before] = renewals(line);
  await serve(t, line.data);
  // The server claims and finishes another renewal meanwhile, so it has looked at the queue more than once.
  await line.done(...commandWords('certificate create --name other --domain other.test --issuer ca --wait'));
  const [after, other] = renewals(line);
  assert.equal(other?.status, 'succeeded');
  assert.deepEqual([after?.lease_owner, after?.claims], [before?.lease_owner, 1]);
  held.release();
  assert.deepEqual(await command.ended, [0, null]);
  assert.equal(renewals(line)[0]?.claims, 1);
});
