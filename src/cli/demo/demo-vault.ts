/**
 * The vault of `vault demo`: four months in which certificates were created, imported, renewed, disabled and deleted.
 * Each step is an ordinary operation, with the clock set back to its day.
 */
import { day } from '../../base/duration.ts';
import { silentLog } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { localCli } from '../../domain/audit/audit.ts';
import { claimRenewal } from '../../domain/renewals/renewal-claim.ts';
import { queueDueRenewals } from '../../domain/renewals/renewals.ts';
import type { Vault } from '../../domain/vault.ts';
import { runClaimed } from '../../jobs/renewal-worker.ts';
import { openVault } from '../runtime/open-vault.ts';
import type { Settings } from '../settings/settings.ts';
import { type DemoStep, demoSteps } from './demo-steps.ts';

/** Creates the vault and lives through its past. Throws if `stop` is aborted. */
export async function createDemoVault(settings: Settings, world: World, stop: AbortSignal): Promise<void> {
  let daysAgo = demoSteps[0]?.daysAgo ?? 0;
  const past: World = {
    ...world,
    now: () => world.now() - daysAgo * day,
    // Waits before retries and between checks are short, because months pass in seconds.
    sleep: (ms, signal) => world.sleep(ms / 100, signal),
  };
  const { vault, close } = await openVault(settings, past, 'create', silentLog);
  try {
    for (const step of demoSteps) {
      stop.throwIfAborted();
      daysAgo = step.daysAgo;
      await live(vault, step, stop);
    }
  } finally {
    await close();
  }
}

async function live(vault: Vault, { does }: DemoStep, stop: AbortSignal): Promise<void> {
  await does?.(vault, localCli);
  await queueDueRenewals(vault, 100);
  for (;;) {
    const claimed = await claimRenewal(vault, 'demo');
    if (claimed === undefined) return;
    await runClaimed(vault, claimed, stop);
  }
}
