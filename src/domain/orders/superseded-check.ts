/** Cancels a renewal whose certificate is changed, disabled, moved or deleted meanwhile. */
import { second } from '../../base/duration.ts';
import { isSameRequest } from '../../crypto/x509/signing-request.ts';
import { findCertificateById } from '../../db/tables/certificates/certificates.ts';
import type { DatabaseContext, LoggedContext } from '../contexts.ts';
import { type OrderProgress, Superseded } from './order-progress.ts';

/** How soon a change cancels a waiting attempt. */
const pollInterval = 20 * second;

/**
 * Throws Superseded if the certificate was changed. Call it before the order is finalized, while stopping loses
 * nothing.
 */
export async function refuseSuperseded(
  { db }: DatabaseContext,
  { certificate: ordered, renewal }: OrderProgress,
): Promise<void> {
  const now = await findCertificateById(db.reader, ordered.id);
  if (now === undefined) throw new Superseded('the certificate was deleted');
  if (now.disabled_at !== null) throw new Superseded('the certificate was disabled');
  if (now.domains !== ordered.domains || now.key_type !== ordered.key_type) {
    throw new Superseded('the names or the key type were changed');
  }
  if (!isSameRequest(now.csr, ordered.csr)) throw new Superseded('the CSR was changed');
  // A revocation changes only this. With a reused key, the new certificate would have the revoked key.
  if (now.reuse_key === 1 && now.changed_at !== ordered.changed_at) {
    throw new Superseded('the current version was revoked');
  }
  if (![now.issuer_id, now.fallback_issuer_id].includes(renewal.issuer_id)) {
    throw new Superseded('the certificate was moved to another issuer');
  }
}

/**
 * Runs `work`, and stops the attempt with Superseded as soon as the certificate is changed, because waiting for a
 * record created by hand can take long.
 */
export async function runUnlessSuperseded<T>(
  vault: LoggedContext,
  attempt: OrderProgress,
  work: () => Promise<T>,
): Promise<T> {
  const done = new AbortController();
  const watching = watch(vault, attempt, done.signal);
  try {
    return await work();
  } catch (error) {
    throw attempt.signal.reason === 'superseded' ? await watching : error;
  } finally {
    done.abort();
    await watching;
  }
}

/** Polls until `done`, or until the certificate is changed; then stops the attempt and returns Superseded. */
async function watch(
  vault: LoggedContext,
  attempt: OrderProgress,
  done: AbortSignal,
): Promise<Superseded | undefined> {
  for (;;) {
    await vault.world.sleep(pollInterval, done);
    if (done.aborted) return undefined;
    try {
      await refuseSuperseded(vault, attempt);
    } catch (error) {
      if (error instanceof Superseded) {
        // The work ended meanwhile: what it did is kept, and the change has queued a renewal of its own.
        if (done.aborted) return undefined;
        attempt.stop('superseded');
        return error;
      }
      vault.log.warn(
        { err: error, certificate: attempt.certificate.name },
        'failed to read the certificate; continuing its renewal',
      );
    }
  }
}
