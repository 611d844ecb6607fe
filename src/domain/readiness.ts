/** Whether the vault can do its work now: three checks that write nothing and name no path. */

import { masterKeyFits } from './master-key-check.ts';
import type { Vault } from './vault.ts';

export type CheckResult = 'ok' | 'failed';

export type Readiness = {
  status: 'ready' | 'not_ready';
  checks: { database: CheckResult; master_key: CheckResult; renewal_engine: CheckResult };
};

/** Asks the database, opens the master key's check blob and looks at the renewal engine's heartbeat. */
export async function readiness(vault: Vault): Promise<Readiness> {
  const database = await succeeds(vault, 'database', () => vault.db.generation());
  const masterKey = await succeeds(vault, 'master_key', async () => {
    if ((await masterKeyFits(vault)) !== 'fits')
      throw new Error('the master key does not open its check blob');
  });
  const checks = {
    database,
    master_key: masterKey,
    renewal_engine: vault.renewalHeartbeat.isFresh ? ('ok' as const) : ('failed' as const),
  };
  const ready = Object.values(checks).every((result) => result === 'ok');
  return { status: ready ? 'ready' : 'not_ready', checks };
}

async function succeeds({ log }: Vault, check: string, work: () => Promise<unknown>): Promise<CheckResult> {
  try {
    await work();
    return 'ok';
  } catch (error) {
    log.warn({ err: error, check }, 'a readiness check failed');
    return 'failed';
  }
}
