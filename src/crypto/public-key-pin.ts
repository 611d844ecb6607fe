/** The pin of a public key: lets a client verify a server before it trusts any CA. */
import { hash, type KeyObject } from 'node:crypto';

/** `sha256//` and the base64 SHA-256 of the SubjectPublicKeyInfo, as in curl's `--pinnedpubkey`. */
export function publicKeyPin({ publicKey }: { readonly publicKey: KeyObject }): string {
  return `sha256//${hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64')}`;
}
