/** The pin of a public key, by which a client knows a server before it trusts any CA. */
import { hash, type X509Certificate } from 'node:crypto';

/** `sha256//` and the base64 of the SHA-256 of the SubjectPublicKeyInfo, as curl's `--pinnedpubkey` takes it. */
export function publicKeyPin({ publicKey }: X509Certificate): string {
  return `sha256//${hash('sha256', publicKey.export({ type: 'spki', format: 'der' }), 'base64')}`;
}
