/**
 * Emergency replacements: each reissues certificates, and revokes the old version of each once the new one is live
 * where it is known to be installed, or once the deadline has passed.
 */
import { toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { Reader } from '../../db/database.ts';
import {
  cancelReplacementCertificates,
  findReplacement,
  insertReplacement,
  insertReplacementCertificates,
  type ReplacementRow,
  updateReplacement,
} from '../../db/tables/replacements.ts';
import { anyProfile, type ProfileCheck } from '../access/profile-confinement.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LoggedContext, TimedContext } from '../contexts.ts';
import type { ReplacementRequest } from './replacement-inputs.ts';
import { type Permits, type SelectedCertificate, selectedCertificates } from './replacement-selection.ts';

/** Who may replace which certificates. */
export type ReplacementLimits = {
  readonly permits?: Permits;
  readonly check?: ProfileCheck;
};

/**
 * Stores a replacement of what is selected and can be replaced, and returns its id; a job carries it out. Throws what
 * `check` throws about the profile of a certificate, what the selection throws, and `nothing_to_replace`.
 */
export async function createReplacement(
  vault: LoggedContext,
  actor: Actor,
  request: ReplacementRequest,
  { permits = () => true, check = anyProfile }: ReplacementLimits = {},
): Promise<number> {
  const chosen: Pick<SelectedCertificate, 'certificate' | 'current'>[] = [];
  let obstructed: string | undefined;
  for await (const rows of selectedCertificates(vault, request, permits)) {
    for (const { certificate, current, profile, obstacle } of rows) {
      if (obstacle === undefined) {
        if (check !== anyProfile) check(profile);
        chosen.push({ certificate, current });
      } else obstructed ??= `${certificate.name}: ${obstacle}`;
    }
  }
  if (chosen.length === 0) {
    throw new Problem('nothing_to_replace', {
      ...(obstructed !== undefined && { detail: `No certificate can be replaced. ${obstructed}.` }),
    });
  }
  const { selection, reason, deadline } = request;
  return vault.db.write(async (writer) => {
    const now = vault.world.now();
    const deadline_at = now + deadline;
    const id = await insertReplacement(writer, {
      reason,
      issuer: selection.issuer ?? null,
      labels: selection.labels === undefined ? null : toJson([...selection.labels]),
      certificate: selection.certificate ?? null,
      created_by: actor.name,
      created_at: now,
      deadline_at,
    });
    const rows = chosen.map(({ certificate, current }) => ({
      ...{ replacement_id: id, certificate_id: certificate.id, name: certificate.name },
      ...{ state: 'waiting' as const, old_version: current.version, next_at: now, changed_at: now },
    }));
    await insertReplacementCertificates(writer, rows);
    const detail = {
      ...selection,
      reason,
      certificates: rows.length,
      deadline_at: formatTimestamp(deadline_at),
    };
    record(writer, { actor, action: 'replacement.create', resource: resourceOf(id), detail }, now);
    return id;
  });
}

/**
 * Ends a replacement: what was issued stays, and nothing more is renewed or revoked by it. Throws
 * `replacement_not_found` and `replacement_finished`.
 */
export async function cancelReplacement(
  { db, world }: TimedContext,
  actor: Actor,
  id: number,
): Promise<void> {
  await db.write(async (writer) => {
    const row = await requireReplacement(writer, id);
    if (row.finished_at !== null) {
      throw new Problem('replacement_finished', {
        detail: `Replacement ${id} is ${row.canceled_by === null ? 'finished' : 'canceled'}.`,
      });
    }
    const now = world.now();
    await cancelReplacementCertificates(writer, id, now);
    await updateReplacement(writer, id, { finished_at: now, canceled_by: actor.name });
    record(writer, { actor, action: 'replacement.cancel', resource: resourceOf(id) }, now);
  });
}

/** The replacement with this id. Throws `replacement_not_found`. */
export async function requireReplacement(reader: Reader, id: number): Promise<ReplacementRow> {
  const row = Number.isSafeInteger(id) ? await findReplacement(reader, id) : undefined;
  if (row !== undefined) return row;
  throw new Problem('replacement_not_found', { hint: 'Try: vault replace status' });
}

/** The replacement in the audit log. */
export function resourceOf(id: number): string {
  return `replacement:${id}`;
}
