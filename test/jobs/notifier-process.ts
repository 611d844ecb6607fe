/** A real process that delivers the notifications of a vault, with an adjustable clock, and that can be killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { TestContext } from 'node:test';
import { sourceUrl } from '../harness/processes/racing-processes.ts';

const script = `
  import { openVault } from '${sourceUrl('cli/runtime/open-vault.ts')}';
  import { realWorld } from '${sourceUrl('base/world.ts')}';
  import { runNotifier } from '${sourceUrl('jobs/notifier.ts')}';
  import { settingsFor } from '${new URL('../harness/test-vault.ts', import.meta.url).href}';
  const ahead = Number(process.argv[2]);
  const world = { ...realWorld, isSet: true, now: () => realWorld.now() + ahead };
  const { vault } = await openVault(settingsFor(process.argv[1]), world, 'refuse');
  await runNotifier(vault, new AbortController().signal);
`;

/**
 * Starts a process whose clock is `ahead` milliseconds ahead. Returns a function that kills it, as does the end of the
 * test.
 */
export function notifierProcess(
  t: Pick<TestContext, 'after'>,
  dataDir: string,
  ahead: number,
): () => Promise<void> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir, String(ahead)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'close');
  const kill = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  t.after(kill);
  return kill;
}
