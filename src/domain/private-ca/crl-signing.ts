/** Signs the CRLs of CA certificates whose keys the vault holds. */
import { day, minute } from '../../base/duration.ts';
import { crlEntry, issueCrl } from '../../crypto/x509/certificate-revocation-list.ts';
import type { Writer } from '../../db/database.ts';
import { type CaCertificateRow, findCaCertificateById } from '../../db/tables/issuance/ca-certificates.ts';
import { findCrlHead, replaceCrl } from '../../db/tables/issuance/crls.ts';
import {
  deleteExpiredRevocations,
  listRevokedCertificates,
} from '../../db/tables/issuance/revoked-certificates.ts';
import type { SecretsContext } from '../contexts.ts';
import { signingAuthority } from './signing-authorities.ts';

/** How long clients accept a CRL (RFC 5280 §5.1.2.5). */
const validFor = 7 * day;
/** Like certificates, for clients whose clock is behind. */
export const backdating = 5 * minute;

/** Encoding this many entries takes a few milliseconds. */
const entriesPerPortion = 500;

/** A signed CRL, and how to store it. */
export type CrlDraft = {
  /** The number of the stored CRL that it replaces; 0 if there is none. */
  readonly replaced: number;
  /**
   * Stores it in the caller's transaction. Returns false, having stored nothing, if another one was stored meanwhile.
   */
  readonly store: (writer: Writer) => Promise<boolean>;
};

/**
 * Signs a CRL and stores it in place of the one with the number `replaced` (0: none). Stores nothing if another process
 * has replaced that one.
 */
export async function signCrl(vault: SecretsContext, id: number, replaced: number): Promise<void> {
  const row = await findCaCertificateById(vault.db.reader, id);
  if (row === undefined) throw new Error(`the CA certificate ${id} is missing`);
  const draft = await draftCrl(vault, row);
  if (draft.replaced === replaced) await vault.db.write(draft.store);
}

/**
 * Signs a CRL of what is revoked at present, valid for a week or until `validUntil` (UTC milliseconds) if that is
 * later.
 */
export async function draftCrl(
  vault: SecretsContext,
  row: CaCertificateRow,
  validUntil = 0,
): Promise<CrlDraft> {
  const { db, world } = vault;
  const { id } = row;
  // Read first: all revocations that it counts are committed, so the entries have them.
  const head = await findCrlHead(db.reader, id);
  const { revocations = 0, number: replaced = 0, signed_at: signedAt = 0 } = head ?? {};
  // A CRL from the future was signed with a wrong clock; what was valid until then is valid still.
  const lastSigned = Math.min(signedAt, world.now());
  const entries = await encodedEntries(vault, id, lastSigned);
  const now = world.now();
  // The time, so that a vault restored from a backup does not use a number again.
  const number = Math.max(replaced + 1, now);
  const dates = { thisUpdate: now - backdating, nextUpdate: Math.max(now + validFor, validUntil) };
  const crl = await issueCrl(signingAuthority(vault, row), { number, ...dates }, entries);
  const signed = { covered: revocations, number, signed_at: now, next_update: dates.nextUpdate, crl };
  return {
    replaced,
    store: async (writer) => {
      const isStored = await replaceCrl(writer, replaced, { ca_certificate_id: id, ...signed });
      // They were on a CRL that was signed after they expired (RFC 5280 §3.3).
      if (isStored) await deleteExpiredRevocations(writer, id, lastSigned);
      return isStored;
    },
  };
}

async function encodedEntries(
  { db, world }: SecretsContext,
  id: number,
  expiresAfter: number,
): Promise<Buffer[]> {
  const entries: Buffer[] = [];
  let after = 0;
  for (;;) {
    const rows = await listRevokedCertificates(db.reader, id, {
      after,
      expiresAfter,
      limit: entriesPerPortion,
    });
    const last = rows.at(-1);
    if (last === undefined) return entries;
    const encoded = rows.map(({ serial, reason, revoked_at: revokedAt }) =>
      crlEntry({ serial, reason, revokedAt }),
    );
    entries.push(Buffer.concat(encoded));
    after = last.id;
    // Other requests are answered in between.
    await world.turn();
  }
}
