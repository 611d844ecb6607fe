/**
 * Creates, revokes and deletes enrollments: tokens that machines exchange for API keys of their own. Every change
 * shares a transaction with its audit event.
 */
import { toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { createEnrollmentToken } from '../../crypto/secrets/enrollment-token.ts';
import { isEnrollmentAuthentic, tagEnrollment } from '../../db/audit/enrollment-tags.ts';
import { goneRow } from '../../db/audit/row-records.ts';
import type { Reader } from '../../db/database.ts';
import {
  deleteEnrollmentRow,
  type EnrollmentRow,
  insertEnrollment,
  liveKeysOf,
  setEnrollmentRevoked,
} from '../../db/tables/access/enrollments.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import { findCertificateIds } from '../../db/tables/certificates/certificates.ts';
import { indexLabels } from '../../db/tables/object-labels.ts';
import { refusePast, storeRevocation } from '../access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { refuseUnfitName } from '../new-names.ts';
import { allowlistIds } from '../versions/certificate-lookup.ts';
import type { CreateEnrollmentInput, RevokeEnrollmentInput } from './enrollment-inputs.ts';
import { enrollmentState, requireEnrollment } from './enrollment-views.ts';

/**
 * Creates an enrollment and returns its token, which cannot be shown again. Throws `invalid_request` for an expiry in
 * the past, keys that expire before the token, and certificates that do not exist.
 */
export async function createEnrollment(
  { db, world }: TimedContext,
  actor: Actor,
  input: CreateEnrollmentInput,
): Promise<{ readonly id: number; readonly token: Secret<string> }> {
  const { prefix, hash, raw: token } = createEnrollmentToken(world);
  const id = await db.write(async (writer) => {
    const now = world.now();
    const name = input.name ?? prefix;
    if (input.name !== undefined) refuseUnfitName(name);
    refusePast(input.expires_at, now);
    refuseShortLived(input);
    const enrollment = await insertEnrollment(writer, {
      name,
      prefix,
      hash,
      scopes: toJson(input.scopes),
      any_certificate: input.certificates === 'any' ? 1 : 0,
      certificates: toJson(input.certificates === 'any' ? [] : await allowed(writer, input.certificates)),
      certificate_labels: labelsText(input.certificate_labels),
      allowed_networks: toJson(input.allowed_networks),
      bind_address: input.bind_address ? 1 : 0,
      labels: labelsText(input.labels),
      key_expires_at: input.key_expires_at ?? null,
      max_uses: input.uses,
      created_by: actor.name,
      created_at: now,
      expires_at: input.expires_at,
    });
    await indexLabels(writer, 'enrollment', enrollment, input.labels);
    await tagEnrollment(writer, enrollment);
    const detail = {
      name,
      prefix,
      scopes: input.scopes,
      certificates: input.certificates === 'any' ? ['*'] : input.certificates,
      ...(input.certificate_labels.length > 0 && { certificate_labels: input.certificate_labels }),
      allowed_networks: input.allowed_networks,
      bind_address: input.bind_address,
      ...(input.labels.length > 0 && { labels: input.labels }),
      max_uses: input.uses,
      expires_at: formatTimestamp(input.expires_at),
      key_expires_at: formatTimestampOrNull(input.key_expires_at ?? null),
    };
    record(writer, { actor, action: 'enrollment.create', resource: resourceOf(enrollment), detail }, now);
    return enrollment;
  });
  return { id, token };
}

/** The ids and names of the certificates. Throws `invalid_request` for a name that does not exist. */
async function allowed(reader: Reader, names: readonly string[]): Promise<[number, string][]> {
  await allowlistIds(reader, names);
  return [...(await findCertificateIds(reader, names))].map(([name, id]) => [id, name]);
}

/** Throws `invalid_request` if the token would create keys that have expired. */
function refuseShortLived({ expires_at, key_expires_at }: CreateEnrollmentInput): void {
  if (key_expires_at === undefined || key_expires_at >= expires_at) return;
  const message = `${formatTimestamp(key_expires_at)} is before the token expires (${formatTimestamp(expires_at)})`;
  throw new Problem('invalid_request', {
    detail: `key_expires_at: ${message}.`,
    errors: [{ path: 'key_expires_at', message }],
    hint: 'Let the keys expire later, or the token earlier.',
  });
}

/** API keys that one transaction revokes. */
const keysAtOnce = 100;

/**
 * Revokes the token with immediate effect and, if `api_keys` is set, then the keys that it created, within `reach`.
 * Returns how many keys it revoked; repeating it revokes those that are left. Throws `enrollment_not_found`.
 */
export async function revokeEnrollment(
  vault: TimedContext,
  actor: Actor,
  id: number,
  { api_keys: withKeys }: RevokeEnrollmentInput,
  reach?: readonly string[],
): Promise<number> {
  const { db, world } = vault;
  await db.write(async (writer) => {
    const row = await requireEnrollment(writer, id);
    if (row.revoked_at !== null) return;
    const isAuthentic = await isEnrollmentAuthentic(writer, id);
    await setEnrollmentRevoked(writer, id, world.now());
    if (isAuthentic) await tagEnrollment(writer, id);
    // An altered row stays altered, and what it was before counts no more if it is put back.
    else writer.rows.set(resourceOf(id), goneRow);
    record(writer, { actor, action: 'enrollment.revoke', ...subject(row) }, world.now());
  });
  if (!withKeys) return 0;
  // In portions, so that other writers wait for none of them. A revoked token creates no more.
  let revoked = 0;
  for (;;) {
    const count = await db.write(async (writer) => {
      const keys = await liveKeysOf(writer, id, keysAtOnce, reach);
      for (const key of keys) await storeRevocation(vault, writer, actor, key);
      return keys.length;
    });
    revoked += count;
    if (count < keysAtOnce) return revoked;
  }
}

/**
 * Deletes an enrollment that creates no more keys; those that it created stay. Throws `enrollment_not_found`, and
 * `enrollment_active` while its token works.
 */
export async function deleteEnrollment({ db, world }: TimedContext, actor: Actor, id: number): Promise<void> {
  await db.write(async (writer) => {
    const row = await requireEnrollment(writer, id);
    if (enrollmentState(row, world.now()) === 'active') {
      throw new Problem('enrollment_active', {
        detail: `Enrollment ${id} (${row.name}) is active; revoke it before you delete it.`,
        hint: `Fix: vault enrollment revoke ${id}`,
      });
    }
    await deleteEnrollmentRow(writer, id);
    record(writer, { actor, action: 'enrollment.delete', ...subject(row) }, world.now());
  });
}

/** The enrollment in the audit log. */
export function resourceOf(id: number): string {
  return `enrollment:${id}`;
}

function subject({ id, name, prefix }: EnrollmentRow) {
  return { resource: resourceOf(id), detail: { name, prefix } };
}
