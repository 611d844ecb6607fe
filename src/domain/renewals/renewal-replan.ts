/** Planning anew: after a start, and after the clock jumped, moments that were computed by another clock may be wrong. */
import { day } from '../../base/duration.ts';
import type { Writer } from '../../db/database.ts';
import { listPlanned, type PlannedRow, pagePlanned } from '../../db/tables/certificate-summaries.ts';
import { updateCertificate } from '../../db/tables/certificates.ts';
import { shortenHolds } from '../../db/tables/issuance-holds.ts';
import { shortenPauses } from '../../db/tables/issuers.ts';
import { shortenLeases } from '../../db/tables/renewals.ts';
import type { TimedContext } from '../contexts.ts';
import { nextRenewalAt } from '../versions/renewal-plan.ts';
import { longestPause } from '../versions/renewal-policy.ts';
import { leaseDuration } from './renewal-claim.ts';
import { longestIssuerPause } from './renewal-outcome.ts';

/** Certificates read, and changed, at once: a few milliseconds of work. Others have their turn in between. */
const atOnce = 200;

/** No CA is asked about its window less often than daily. */
const latestAriCheck = 7 * day;

/**
 * Computes the moment of every certificate again and stores those that differ; leases and pauses that a clock from the
 * future made last are shortened. Returns how many certificates were changed.
 */
export async function replanAll({ db, world }: TimedContext): Promise<number> {
  const now = world.now();
  await db.write(async (writer) => {
    await shortenLeases(writer, now + leaseDuration);
    await shortenPauses(writer, now + longestIssuerPause);
    await shortenHolds(writer, now + longestPause);
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

/** Looks at them once more: a renewal may have ended since, and what it planned is right. */
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

/** What is to be changed of a certificate, or undefined where its moment is right. */
function correction(row: PlannedRow, now: number) {
  const next = nextRenewalAt(row, currentOf(row), now);
  // What is due is due; only moments to come are compared.
  const isSame =
    next === row.next_renewal_at || ((next ?? now + 1) <= now && (row.next_renewal_at ?? now + 1) <= now);
  // An answer that a clock from the future put far away is asked for again.
  const asksTooLate = row.ari_check_at !== null && row.ari_check_at > now + latestAriCheck;
  // Put down, or each further start would count its wait from anew.
  const isFromFuture = row.last_attempt_at !== null && row.last_attempt_at > now;
  if (isSame && !asksTooLate && !isFromFuture) return undefined;
  return {
    next_renewal_at: next,
    ...(asksTooLate && { ari_check_at: now }),
    ...(isFromFuture && { last_attempt_at: now }),
  };
}

function currentOf(row: PlannedRow) {
  const {
    v_not_before: not_before,
    v_not_after: not_after,
    v_serial: serial,
    v_created_at: created_at,
  } = row;
  const hasVersion = not_before !== null && not_after !== null && serial !== null && created_at !== null;
  return hasVersion ? { not_before, not_after, serial, created_at } : null;
}
