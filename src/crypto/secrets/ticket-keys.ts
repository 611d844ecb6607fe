/**
 * The keys of TLS session tickets, derived from a seed that several processes can share and from the served
 * certificate.
 */
import { hkdfSync } from 'node:crypto';

/** A name, an HMAC key and an encryption key, as in node:tls. */
const ticketKeysSize = 48;

/** Size of the random seed in bytes. */
export const ticketSeedSize = 32;

/**
 * Different keys for each certificate (its fingerprint): otherwise a resumed session would keep the previous
 * certificate.
 */
export function ticketKeysFrom(seed: Uint8Array, fingerprint: string): Buffer {
  return Buffer.from(hkdfSync('sha256', seed, '', `session tickets ${fingerprint}`, ticketKeysSize));
}
