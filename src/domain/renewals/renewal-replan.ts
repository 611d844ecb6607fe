/**
 * Reschedules all renewals after a start and after the clock jumped, because times computed by a wrong clock may be
 * wrong.
 */
import { day } from '../../base/duration.ts';
import type { Writer } from '../../db/database.ts';
import {
  listPlanned,
  type PlannedRow,
  pagePlanned,
} from '../../db/tables/certificates/certificate-summaries.ts';
import { updateCertificate } from '../../db/tables/certificates/certificates.ts';
import { shortenHolds } from '../../db/tables/issuance/issuance-holds.ts';
import { shortenPauses } from '../../db/tables/issuance/issuers.ts';
import { shortenLeases } from '../../db/tables/renewals/renewals.ts';
import type { TimedContext } from '../contexts.ts';
import { nextRenewalAt } from '../schedule/renewal-plan.ts';
import { maxPause } from '../schedule/renewal-policy.ts';
import { leaseDuration } from './renewal-claim.ts';
import { maxIssuerPause } from './renewal-outcome.ts';

/** Certificates per step: a few milliseconds of work, after which the event loop runs. */
const atOnce = 200;

/** CAs are queried at least daily, so a query scheduled later than this was scheduled by a wrong clock. */
const latestAriCheck = 7 * day;

/**
 * Computes the next renewal of every certificate again and stores those that differ. Shortens leases and pauses that a
 * clock ahead of time extended. Returns how many certificates changed.
 */
export async function replanAll({ db, world }: TimedContext): Promise<number> {
  const now = world.now();
  await db.write(async (writer) => {
    await shortenLeases(writer, now + leaseDuration);
    await shortenPauses(writer, now + maxIssuerPause);
    await shortenHolds(writer, now + maxPause);
  });
  let changed = 0;
  let past = 0;
  for (;;) {
    const planned = await pagePlanned(db.reader, past, atOnce);
    const wrong = planned.filter((row) => correction(row, now) !== undefined).map(({ id }) => id);
    if (wrong.length > 0) changed += await db.write((writer) => correct(writer, wrong, now));
    past = planned.at(-1)?.id ?? past;
    if (planned.length < atOnce) return changed;
    await world.turn();
  }
}

/** Checks again in the transaction, because a renewal may have rescheduled the certificate meanwhile. */
async function correct(writer: Writer, ids: readonly number[], now: number): Promise<number> {
  let changed = 0;
  for (const row of await listPlanned(writer, ids)) {
    const changes = correction(row, now);
    if (changes === undefined) continue;
    await updateCertificate(writer, row.id, changes);
    changed += 1;
  }
  return changed;
}

/** The changes to a certificate, or undefined if its schedule is right. */
function correction(row: PlannedRow, now: number) {
  const next = nextRenewalAt(row, currentOf(row), now);
  // Two times in the past both mean due, so only future ones are compared.
  const isSame =
    next === row.next_renewal_at || ((next ?? now + 1) <= now && (row.next_renewal_at ?? now + 1) <= now);
  // A clock ahead of time scheduled this query too late.
  const queriesTooLate = row.ari_check_at !== null && row.ari_check_at > now + latestAriCheck;
  // Stored, because otherwise each start would restart the waiting time.
  const isFromFuture = row.last_attempt_at !== null && row.last_attempt_at > now;
  if (isSame && !queriesTooLate && !isFromFuture) return undefined;
  return {
    next_renewal_at: next,
    ...(queriesTooLate && { ari_check_at: now }),
    ...(isFromFuture && { last_attempt_at: now }),
  };
}

function currentOf(row: PlannedRow) {
  const {
    v_not_before: not_before,
    v_not_after: not_after,
    v_serial: serial,
    v_created_at: created_at,
    v_source: source,
  } = row;
  if (not_before === null || not_after === null || serial === null) return null;
  return created_at === null || source === null
    ? null
    : { not_before, not_after, serial, created_at, source };
}
