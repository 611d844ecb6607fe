/**
 * Certificate revocation lists (RFC 5280 §5), encoded here: the library builds an object for each part of each entry,
 * which takes seconds for 100,000 entries and cannot be done in portions.
 */
import { explicit, fromHex, implicit, integer, sequence, tagged } from '../der.ts';
import { opened, type SigningAuthority } from './signing-authority.ts';
import type { X509Issuer } from './x509-issuance.ts';
import { extension, time } from './x509-values.ts';

/**
 * A revoked certificate: its serial number in hexadecimal, a reason of §5.3.1, and when it was revoked (UTC
 * milliseconds).
 */
export type CrlEntry = { readonly serial: string; readonly reason: number; readonly revokedAt: number };

export type CrlTerms = {
  /** A positive integer that increases with each list of an issuer (§5.2.3). */
  readonly number: number;
  /** UTC milliseconds. */
  readonly thisUpdate: number;
  readonly nextUpdate: number;
};

/** The identifiers of the extensions: authorityKeyIdentifier, cRLNumber, reasonCode. */
const authorityKeyIdentifier = Buffer.from('0603551d23', 'hex');
const crlNumber = Buffer.from('0603551d14', 'hex');
const reasonCode = Buffer.from('0603551d15', 'hex');

/**
 * The DER of a list that the issuer signs; `entries` are encoded with `crlEntry`. The signature is computed on libuv's
 * threads. Throws a plain error if the issuer's key has an unsupported type or is not that of its certificate.
 */
export async function issueCrl(
  issuer: SigningAuthority | X509Issuer,
  { number, thisUpdate, nextUpdate }: CrlTerms,
  entries: readonly Buffer[],
): Promise<Buffer> {
  const authority = opened(issuer);
  const extensions = sequence(
    extension(authorityKeyIdentifier, sequence(implicit(0, authority.keyIdentifier))),
    extension(crlNumber, integer(number)),
  );
  const list = sequence(
    integer(1),
    authority.algorithm,
    authority.name,
    time(thisUpdate),
    time(nextUpdate),
    // An empty list has no revokedCertificates (§5.1.2.6).
    ...(entries.length === 0 ? [] : [sequence(...entries)]),
    explicit(0, extensions),
  );
  return authority.signed(list);
}

/** The DER of an entry, for `issueCrl`; several can be joined. */
export function crlEntry({ serial, reason, revokedAt }: CrlEntry): Buffer {
  const parts = [integer(fromHex(serial)), time(revokedAt)];
  // No reason is better than the reason "unspecified" (§5.3.1).
  if (reason !== 0) {
    parts.push(sequence(extension(reasonCode, tagged(0x0a, Buffer.of(reason)))));
  }
  return sequence(...parts);
}
