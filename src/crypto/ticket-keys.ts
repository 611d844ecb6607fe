/** The keys of TLS session tickets, made of a seed that several processes may share and of the certificate that they serve. */
import { hkdfSync } from 'node:crypto';

/** A name, an HMAC key and an encryption key, as node:tls has them. */
const ticketKeysSize = 48;

/** Bytes of a seed, which is drawn at random. */
export const ticketSeedSize = 32;

/** Other keys for another certificate (its fingerprint): a resumed session would go on with the one before. */
export function ticketKeysFrom(seed: Uint8Array, fingerprint: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, '', `session tickets ${fingerprint}`, ticketKeysSize));
}
