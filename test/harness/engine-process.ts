/** Real worker processes on a test's vault, which can be killed at any request that the scripted CA receives. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { sourceUrl } from './racing-processes.ts';
import type { AcmeKind, ScriptedAcme } from './scripted-acme.ts';

const script = `
  import { openVault } from '${sourceUrl('cli/runtime/open-vault.ts')}';
  import { realWorld } from '${sourceUrl('base/world.ts')}';
  import { runRenewalWorker } from '${sourceUrl('jobs/renewal-worker.ts')}';
  import { settingsFor } from '${new URL('test-vault.ts', import.meta.url).href}';
  import '${sourceUrl('crypto/x509-issuance.ts')}';
  const stop = new AbortController();
  process.once('SIGTERM', () => stop.abort());
  process.stdout.write('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  process.stdin.destroy();
  const { vault, close } = await openVault(settingsFor(process.argv[1]), realWorld, 'refuse');
  await runRenewalWorker(vault, stop.signal);
  await close();
`;

export type WorkerProcess = {
  /** Lets it begin to work; before, it has only loaded what it needs. */
  readonly begin: () => void;
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** What it wrote to its standard error, once it has ended. */
  readonly complaints: Promise<string>;
};

/** Starts one; it ends with the test at the latest. */
export async function workerProcess(t: Pick<TestContext, 'after'>, dataDir: string): Promise<WorkerProcess> {
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(
    process.execPath,
    ['--input-type=module', '-e', script, dataDir],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  const ended = once(child, 'close');
  const complaints = text(child.stderr);
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    await ended;
  };
  t.after(() => kill('SIGKILL'));
  await Promise.race([once(child.stdout, 'data'), ended]);
  child.stdout.resume();
  return { begin: () => child.stdin.write('go'), kill, complaints };
}

const kinds: readonly AcmeKind[] = [
  ...(['directory', 'newNonce', 'newAccount', 'account', 'newOrder', 'order', 'authorization'] as const),
  ...(['challenge', 'finalize', 'certificate', 'alternate', 'renewalInfo', 'other'] as const),
];

/**
 * Calls `act` at every request, by its number from 1 on: `lost` before the CA has seen it, `unanswered` when the CA has
 * done what it asks and before the answer. A request whose sender is `gone` has no effect. The returned function ends it.
 */
export function atRequests(
  ca: ScriptedAcme,
  act: (number: number, kind: AcmeKind, moment: 'lost' | 'unanswered') => unknown,
): () => void {
  let count = 0;
  const ends = kinds.map((kind) =>
    ca.overrideAll(kind, async (_, usual) => {
      count += 1;
      const number = count;
      if ((await act(number, kind, 'lost')) === 'gone') return { cutAfter: 0 };
      const reply = await usual();
      await act(number, kind, 'unanswered');
      return reply;
    }),
  );
  return () => {
    for (const end of ends) end();
  };
}
