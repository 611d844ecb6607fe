/** SHA-256 (FIPS 180-4) of what is small and needed often: tokens that are presented, links of the audit log. */
import { hash } from 'node:crypto';

/** The 32 bytes of the hash of a text in UTF-8. */
export function sha256(text: string): Buffer {
  // By way of a string: Node gives each hash that it returns as a Buffer memory of its own, which takes as long again.
  return Buffer.from(hash('sha256', text, 'latin1'), 'latin1');
}
