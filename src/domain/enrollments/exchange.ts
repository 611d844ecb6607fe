/**
 * Exchanges an enrollment token for an API key of the machine that presents it. A token has a number of uses, each of
 * which creates one key; the key, the count and their audit events share a transaction. A client that lost the answer
 * repeats its request: with the text that it chose for it, it gets a new secret of the key that it created, not another
 * key.
 */
import type { CertName } from '../../base/cert-name.ts';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import { parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import { type ApiKeyToken, createToken, tokenMatches } from '../../crypto/secrets/api-key-token.ts';
import { readEnrollmentToken } from '../../crypto/secrets/enrollment-token.ts';
import { enrollmentFits, tagEnrollment } from '../../db/audit/enrollment-tags.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findApiKeyLike } from '../../db/tables/access/api-keys.ts';
import {
  countEnrollmentUse,
  type EnrollmentRow,
  findEnrollmentByPrefix,
  findKeyOfRequest,
} from '../../db/tables/access/enrollments.ts';
import { findCertificateIds } from '../../db/tables/certificates/certificates.ts';
import { isInside, parseIpAddress, parseIpNetwork } from '../../net/ip-network.ts';
import { storeRotation } from '../access/api-key-rotation.ts';
import { storeApiKey } from '../access/api-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, TimedContext } from '../contexts.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import type { ExchangeInput } from './enrollment-inputs.ts';
import { enrollmentState } from './enrollment-views.ts';
import { resourceOf } from './enrollments.ts';

type TokenRow = EnrollmentRow & Recorded;

/** An enrollment whose token was presented. */
export type PresentedEnrollment = {
  readonly id: number;
  /** The name in the audit log. */
  readonly actorName: string;
  readonly token: ApiKeyToken;
};

/** A new key, or the key of a repeated request with its new secret. */
export type Exchanged = {
  readonly id: number;
  readonly raw: Secret<string>;
  readonly isRepeated: boolean;
};

/**
 * The enrollment of a raw token in any state; undefined for an unknown or wrong token, and for one whose row was
 * modified outside the vault. Takes the same time for each well-formed token.
 */
export async function presentedEnrollment(
  { db, log }: TimedContext & LogContext,
  raw: string,
): Promise<PresentedEnrollment | undefined> {
  const token = readEnrollmentToken(raw);
  if (token === undefined) return undefined;
  const row = await findEnrollmentByPrefix(db.reader, token.prefix);
  const fits = enrollmentFits(requireIntegrity(db), row ?? unknownRow);
  if (!tokenMatches(token, row?.hash) || row === undefined) return undefined;
  if (fits) return { id: row.id, actorName: `enrollment:${row.id}:${row.name}`, token };
  log.error({ enrollment: row.id }, 'enrollment token rejected: database row modified outside the vault');
  return undefined;
}

/**
 * Creates an API key for the machine. Throws `enrollment_inactive` for a token that is used up, revoked or expired, and
 * for one whose certificates are gone; and `forbidden` outside its networks.
 */
export async function exchangeToken(
  vault: TimedContext,
  actor: Actor,
  { token }: PresentedEnrollment,
  { host, request }: ExchangeInput,
): Promise<Exchanged> {
  const { db, world } = vault;
  const chosen = request === undefined ? null : sha256(request);
  // A token that creates nothing costs no transaction, however often it is presented.
  await requireUsable(
    db.reader,
    await current(db.reader, requireIntegrity(db), token),
    actor,
    chosen,
    world.now(),
  );
  const made = createToken(world);
  return db.write(async (writer) => {
    const now = world.now();
    const row = await current(writer, requireIntegrity(writer), token);
    const earlier = await requireUsable(writer, row, actor, chosen, now);
    if (earlier !== undefined) {
      await storeRotation(vault, writer, actor, earlier, made, { overlap: 0 });
      return { id: earlier, raw: made.raw, isRepeated: true };
    }
    const use = await countEnrollmentUse(writer, row.id, now);
    if (use === undefined) throw inactive(row, 'used_up');
    await tagEnrollment(writer, row.id);
    const name = await freeName(writer, host, row.id, use);
    const settings = await settingsOf(writer, row, name, actor.ip);
    const origin = { enrollment_id: row.id, enrollment_request: chosen };
    const id = await storeApiKey(vault, writer, actor, settings, made, origin);
    const detail = { name: row.name, api_key: id, key_name: name, host, uses: use, max_uses: row.max_uses };
    record(writer, { actor, action: 'enrollment.exchange', resource: resourceOf(row.id), detail }, now);
    return { id, raw: made.raw, isRepeated: false };
  });
}

/** The row of a token that was presented before. Throws `enrollment_inactive` if it was deleted since. */
async function current(reader: Reader, integrity: Integrity, token: ApiKeyToken): Promise<TokenRow> {
  const row = await findEnrollmentByPrefix(reader, token.prefix);
  if (row !== undefined && enrollmentFits(integrity, row)) return row;
  throw new Problem('enrollment_inactive');
}

/** The id of the key that this request created before; undefined for a request that may create one. */
async function requireUsable(
  reader: Reader,
  row: TokenRow,
  { ip }: Actor,
  request: Buffer | null,
  now: number,
): Promise<number | undefined> {
  const networks = parseJson(row.allowed_networks);
  const isBound = row.bind_address === 1;
  const address = ip === undefined ? undefined : parseIpAddress(ip);
  const known = networks.map(parseIpNetwork).filter((network) => network !== undefined);
  const isInReach = networks.length === 0 || (address !== undefined && isInside(address, known));
  if (!isInReach || (isBound && address === undefined)) {
    throw new Problem('forbidden', {
      detail: `This enrollment token may not be used from the address ${ip ?? 'unknown'}.`,
      hint: 'Its networks are set with "vault enrollment create --allow-ip".',
    });
  }
  const state = enrollmentState(row, now);
  if (state === 'revoked' || row.expires_at <= now)
    throw inactive(row, state === 'revoked' ? state : 'expired');
  const earlier = request === null ? undefined : await findKeyOfRequest(reader, row.id, request);
  if (earlier === undefined && state === 'used_up') throw inactive(row, state);
  return earlier?.id;
}

function inactive(row: EnrollmentRow, state: 'used_up' | 'expired' | 'revoked'): Problem {
  const { id, uses, max_uses } = row;
  const what = {
    used_up: `is used up: ${uses} of ${max_uses} uses`,
    expired: 'has expired',
    revoked: 'is revoked',
  }[state];
  return new Problem('enrollment_inactive', {
    detail: `Enrollment token ${id} ${what}.`,
    hint: 'Create another one: vault enrollment create',
  });
}

/** The name of the host, with a number if another key has it. */
async function freeName(reader: Reader, host: string, id: number, use: number): Promise<string> {
  for (const name of [host, `${host}-${use}`]) {
    if ((await findApiKeyLike(reader, name)) === undefined) return name;
  }
  return `${host}-${id}-${use}`;
}

/** The settings of a new key. Throws `enrollment_inactive` if it could read nothing. */
async function settingsOf(
  writer: Writer,
  row: EnrollmentRow,
  name: string,
  ip: string | undefined,
): Promise<CreateApiKeyInput> {
  const pairs = parseJson(row.certificates);
  const ids = await findCertificateIds(
    writer,
    pairs.map(([, known]) => known),
  );
  // Another certificate of the same name is not the one that was granted.
  const there = pairs.filter(([id, known]) => ids.get(known) === id).map(([, known]) => known as CertName);
  const certificate_labels = parseJsonOr(row.certificate_labels, []);
  if (row.any_certificate === 0 && there.length === 0 && certificate_labels.length === 0) {
    throw new Problem('enrollment_inactive', {
      detail: `The certificates of enrollment token ${row.id} were deleted.`,
      hint: 'Create another one: vault enrollment create',
    });
  }
  const own = ip === undefined ? undefined : parseIpNetwork(ip)?.text;
  return {
    name,
    scopes: parseJson(row.scopes),
    certificates: row.any_certificate === 1 ? 'any' : there,
    certificate_labels,
    allowed_networks: row.bind_address === 1 && own !== undefined ? [own] : parseJson(row.allowed_networks),
    labels: parseJsonOr(row.labels, []),
    profiles: [],
    role: null,
    reach: [],
    client_certificate: null,
    expires_at: row.key_expires_at ?? undefined,
  };
}

const unknownRow: TokenRow = {
  ...{ id: 0, name: '', prefix: '', hash: Buffer.alloc(32), scopes: toJson([]), any_certificate: 0 },
  ...{ certificates: toJson([]), certificate_labels: null, allowed_networks: toJson([]), bind_address: 0 },
  ...{ labels: null, key_expires_at: null, max_uses: 0, uses: 0, created_by: '', created_at: 0 },
  ...{ expires_at: 0, revoked_at: null, last_used_at: null, tag: Buffer.alloc(32) },
  recorded: Buffer.alloc(96),
};
