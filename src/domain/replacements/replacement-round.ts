/** One round of all replacements: what is due, the most urgent first, a bounded number of steps. */
import { AcmeError } from '../../acme/acme-error.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { StorageError } from '../../base/storage-error.ts';
import {
  type CertificateVersionRow,
  findVersion,
  listVersions,
} from '../../db/tables/certificates/certificate-versions.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import {
  countRenewing,
  dueReplacementChecks,
  dueReplacementRenewals,
  type ReplacementStepRow,
  updateReplacementCertificate,
} from '../../db/tables/replacements.ts';
import { type RevocationReason, revokeVersion } from '../certificates/revocation.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import type { CaContext } from '../issuance-contexts.ts';
import type { QueueContext } from '../renewals/renewal-queue.ts';
import { advance, afterFailure, confirmReplaced, finish, haveSameKey } from './replacement-steps.ts';

export type ReplacementContext = SecretsContext & QueueContext & CaContext & LogContext;

/** Certificates per round, and renewals that may be open: the queue has room for others in between. */
const stepsAtOnce = 100;
const renewalsAtOnce = 200;

/** Revocations at a time: each waits for a CA. */
const revocationsAtOnce = 8;

/** Versions of one certificate that may have the same key. */
const versionsCompared = 100;

const reasons = {
  superseded: 'superseded',
  // Subscribers may not give the reason cACompromise.
  'ca-compromised': 'superseded',
  'key-compromised': 'keyCompromise',
} as const satisfies Record<ReplacementStepRow['reason'], RevocationReason>;

/**
 * Advances what is due. Returns whether more may be due already. Throws what the database throws; what fails for one
 * certificate is stored with it.
 */
export async function workReplacements(vault: ReplacementContext, signal: AbortSignal): Promise<boolean> {
  const { db, world } = vault;
  const { reader } = db;
  const due = await dueReplacementChecks(reader, world.now(), stepsAtOnce);
  const room = Math.min(stepsAtOnce, Math.max(0, renewalsAtOnce - (await countRenewing(reader))));
  const begun = room === 0 ? [] : await dueReplacementRenewals(reader, world.now(), room);
  const toRevoke: ReplacementStepRow[] = [];
  for (const row of [...due, ...begun]) {
    if (signal.aborted) return false;
    await attempt(vault, row, signal, async () => {
      if (await advance(vault, row)) toRevoke.push(row);
    });
    await world.turn();
  }
  const left = toRevoke.values();
  const work = async () => {
    for (const row of left) {
      if (!signal.aborted) await attempt(vault, row, signal, () => revokeOld(vault, row, signal));
    }
  };
  // No revocation is left running when the round ends with an error.
  const outcomes = await Promise.allSettled(Array.from({ length: revocationsAtOnce }, work));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return due.length === stepsAtOnce || begun.length === stepsAtOnce;
}

/** One step of a certificate. An unexpected error of one is logged and delays only this one. */
async function attempt(
  vault: ReplacementContext,
  row: ReplacementStepRow,
  signal: AbortSignal,
  step: () => Promise<void>,
): Promise<void> {
  try {
    await step();
  } catch (error) {
    if (signal.aborted || error instanceof StorageError) throw error;
    vault.log.error({ err: error, certificate: row.name }, 'replacement step failed');
    await retryLater(vault, row, 'internal error; see the server log');
  }
}

async function retryLater(
  { db, world }: ReplacementContext,
  row: ReplacementStepRow,
  error: string,
  retryAfterMs = 0,
): Promise<void> {
  const now = world.now();
  const { attempts, next_at } = afterFailure(row, now);
  const changes = { attempts, error, changed_at: now, next_at: Math.max(next_at, now + retryAfterMs) };
  await db.write((writer) => updateReplacementCertificate(writer, row.id, changes));
}

/** Revokes the old version and, of a compromised key, the versions before it that have the same one. */
async function revokeOld(
  vault: ReplacementContext,
  row: ReplacementStepRow,
  signal: AbortSignal,
): Promise<void> {
  const reason = reasons[row.reason];
  try {
    const certificate = await confirmReplaced(vault, row);
    if (certificate === undefined) return;
    for (const version of await versionsToRevoke(vault, certificate.id, row)) {
      // The CA of the version before may have taken a while.
      if ((await confirmReplaced(vault, row)) === undefined) return;
      await revokeOnce(vault, row, certificate, version, reason, signal);
    }
    await vault.db.write((writer) => finish(vault, writer, row, { error: null }));
  } catch (error) {
    if (signal.aborted || error instanceof StorageError) throw error;
    if (!(error instanceof OperatorError || error instanceof Problem)) throw error;
    vault.log.warn({ err: error, certificate: row.name }, 'failed to revoke a replaced version');
    const message = error.message;
    // A CA may be back later; other errors stay until a person acts.
    if (error instanceof AcmeError) await retryLater(vault, row, message, error.retryAfterMs);
    else await vault.db.write((writer) => finish(vault, writer, row, { error: message }));
  }
}

/** Revokes a version. A person or another replacement may do so at the same moment, which is as good. */
async function revokeOnce(
  vault: ReplacementContext,
  { created_by }: ReplacementStepRow,
  { id, name }: CertificateRow,
  { version }: CertificateVersionRow,
  reason: RevocationReason,
  signal: AbortSignal,
): Promise<void> {
  try {
    await revokeVersion(vault, { name: created_by }, name, { version, reason }, signal);
  } catch (error) {
    if (signal.aborted || error instanceof StorageError) throw error;
    if (((await findVersion(vault.db.reader, id, version))?.revoked_at ?? null) === null) throw error;
  }
}

/** The versions that still count as valid. */
async function versionsToRevoke(
  { db, world }: ReplacementContext,
  certificateId: number,
  { old_version, new_version, reason }: ReplacementStepRow,
): Promise<CertificateVersionRow[]> {
  const before = new_version ?? old_version + 1;
  const versions = await listVersions(db.reader, certificateId, { before, limit: versionsCompared });
  const old = versions.find(({ version }) => version === old_version);
  if (old === undefined) return [];
  return versions.filter((row) => {
    if (row.revoked_at !== null || row.not_after <= world.now()) return false;
    return row === old || (reason === 'key-compromised' && haveSameKey(row, old));
  });
}
