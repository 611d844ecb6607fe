/** Logs at the start and once a day which private CAs stop issuing unless a person acts. */
import { day, hour } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { type CaExpiry, caExpiries, listPrivateCas } from '../domain/private-ca/ca-expiry.ts';

/** Runs until `signal` is aborted. Logs errors and retries an hour later. */
export async function runPrivateCaLog(vault: LoggedContext, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    let wait: number = day;
    try {
      await logExpiries(vault);
    } catch (error) {
      log.error({ err: error }, 'failed to query the expiry of private CAs; retrying in an hour');
      wait = hour;
    }
    await world.sleep(wait, signal);
  }
}

async function logExpiries(vault: LoggedContext): Promise<void> {
  const expiring: CaExpiry[] = [];
  for (const ca of await listPrivateCas(vault.db.reader)) {
    expiring.push(...(await caExpiries(vault, ca)).filter(({ level }) => level > 0));
    await vault.world.turn();
  }
  for (const { name, role, notAfter, urgency, fix } of expiring) {
    vault.log.warn(
      { private_ca: name, expires_at: formatTimestamp(notAfter), fix },
      `${role} of private CA ${urgency === 'over' ? 'has expired' : 'expires soon'}`,
    );
  }
}
