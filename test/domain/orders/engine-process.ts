/** Real worker processes for the vault of a test, which can be killed at any request to the scripted CA. */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { AcmeKind, ScriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { sourceUrl } from '../../harness/processes/racing-processes.ts';

const script = `
  import { openVault } from '${sourceUrl('cli/runtime/open-vault.ts')}';
  import { realWorld } from '${sourceUrl('base/world.ts')}';
  import { runRenewalWorker } from '${sourceUrl('jobs/renewal-worker.ts')}';
  import { settingsFor } from '${new URL('../../harness/test-vault.ts', import.meta.url).href}';
  import '${sourceUrl('crypto/x509/x509-issuance.ts')}';
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
  /** Starts its work; until then it only loads its modules. */
  readonly begin: () => void;
  readonly kill: (signal: NodeJS.Signals) => Promise<void>;
  /** Its standard error, after it has exited. */
  readonly complaints: Promise<string>;
};

/** Starts a process. It stops when the test ends, at the latest. */
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

/** A request: the `nth`, from 1, of its kind. */
export type Request = { readonly kind: AcmeKind; readonly nth: number };

/**
 * Calls `act` at every request: `lost` before the CA receives it, `unanswered` after the CA processed it
 * but before the response. A request whose sender is `gone` has no effect. The returned function stops this.
 */
export function atRequests(
  ca: ScriptedAcme,
  act: (at: Request, moment: 'lost' | 'unanswered') => unknown,
): () => void {
  const ends = kinds.map((kind) => {
    let count = 0;
    return ca.overrideAll(kind, async (_, usual) => {
      count += 1;
      const at = { kind, nth: count };
      if ((await act(at, 'lost')) === 'gone') return { cutAfter: 0 };
      const reply = await usual();
      await act(at, 'unanswered');
      return reply;
    });
  });
  return () => {
    for (const end of ends) end();
  };
}
