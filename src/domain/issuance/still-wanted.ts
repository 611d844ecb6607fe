/** Whether what is being ordered is still wanted: people change, disable, move and delete certificates at any moment. */
import { second } from '../../base/duration.ts';
import { findCertificateById } from '../../db/tables/certificates.ts';
import type { DatabaseContext, LoggedContext } from '../contexts.ts';
import { type Attempt, type StopReason, Superseded } from './attempt.ts';

/** How soon a change ends an attempt that waits for something. */
const lookAgainAfter = 20 * second;

/**
 * Throws Superseded where something else is wanted now. Until the request is sent nothing is lost by stopping; after that
 * there will be a certificate.
 */
export async function refuseSuperseded(
  { db }: DatabaseContext,
  { certificate: asked, renewal }: Attempt,
): Promise<void> {
  const now = await findCertificateById(db.reader, asked.id);
  if (now === undefined) throw new Superseded('the certificate was deleted');
  if (now.disabled_at !== null) throw new Superseded('the certificate was disabled');
  if (now.domains !== asked.domains || now.key_type !== asked.key_type) {
    throw new Superseded('other names or another type of key are wanted now');
  }
  // Of what is wanted, only a revocation changes nothing but this; the key that is used again was the revoked one.
  if (now.reuse_key === 1 && now.changed_at !== asked.changed_at) {
    throw new Superseded('the current version was revoked');
  }
  if (![now.issuer_id, now.fallback_issuer_id].includes(renewal.issuer_id)) {
    throw new Superseded('the certificate was moved to another issuer');
  }
}

/**
 * Runs `work` on the attempt and stops it, with Superseded, as soon as something else is wanted: a record that a person
 * has to make is waited for as long as they take.
 */
export async function whileWanted<T>(
  vault: LoggedContext,
  attempt: Attempt,
  work: (watched: Attempt) => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  const stop = new AbortController();
  const follow = () => stop.abort(attempt.signal.reason);
  attempt.signal.addEventListener('abort', follow, { once: true });
  if (attempt.signal.aborted) follow();
  const watching = watch(vault, attempt, done.signal, stop);
  try {
    return await work({ ...attempt, signal: stop.signal });
  } catch (error) {
    throw stop.signal.reason === ('superseded' satisfies StopReason) ? await watching : error;
  } finally {
    done.abort();
    attempt.signal.removeEventListener('abort', follow);
    await watching;
  }
}

/** Looks until `done`, or until something else is wanted, which stops the work and is returned. */
async function watch(
  vault: LoggedContext,
  attempt: Attempt,
  done: AbortSignal,
  stop: AbortController,
): Promise<Superseded | undefined> {
  for (;;) {
    await vault.world.sleep(lookAgainAfter, done);
    if (done.aborted) return undefined;
    try {
      await refuseSuperseded(vault, attempt);
    } catch (error) {
      if (error instanceof Superseded) {
        stop.abort('superseded' satisfies StopReason);
        return error;
      }
      vault.log.warn(
        { err: error, certificate: attempt.certificate.name },
        'failed to read the certificate; continuing its renewal',
      );
    }
  }
}
