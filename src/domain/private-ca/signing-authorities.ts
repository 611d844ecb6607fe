/** The CA certificates that sign, kept open: opening a key and its certificate takes as long as a fast signature. */

import type { Keyring } from '../../crypto/secrets/keyring.ts';
import { SigningAuthority } from '../../crypto/x509/signing-authority.ts';
import type { CaCertificateRow } from '../../db/tables/issuance/ca-certificates.ts';
import { type BoundedCache, boundedCache } from '../cache/bounded-cache.ts';
import type { KeyringContext } from '../contexts.ts';
import { authority } from './authorities.ts';

/** An open authority, and the columns that it was opened from: when they change, it is opened again. */
type OpenAuthority = {
  readonly certificate: Buffer;
  readonly sealed: Buffer;
  readonly authority: SigningAuthority;
};

/** More private CAs than a vault usually has. */
const maxOpen = 32;

/** By the id of the CA certificate. Their keys stay in memory no longer than the master key, which opens them. */
const open = new WeakMap<Keyring, BoundedCache<number, OpenAuthority>>();

/** A CA certificate with its key, for one signature after the other. Throws like `authority` and `SigningAuthority`. */
export function signingAuthority({ keyring }: KeyringContext, row: CaCertificateRow): SigningAuthority {
  const known = open.get(keyring) ?? boundedCache<number, OpenAuthority>(maxOpen);
  open.set(keyring, known);
  const { certificate, sealed_private_key: sealed } = row;
  const last = known.get(row.id);
  // Another master key seals in other bytes.
  if (last?.certificate.equals(certificate) && last.sealed.equals(sealed)) return last.authority;
  const opened = new SigningAuthority(authority({ keyring }, row));
  known.set(row.id, { certificate, sealed, authority: opened });
  return opened;
}
