/** The public keys of SSH servers, by which they are known. */
import { createHash } from 'node:crypto';
import type { ServerHostKeyAlgorithm } from 'ssh2';

/** A public key of a server: its type, such as `ssh-ed25519`, and its bytes (RFC 4253 §6.6). */
export type HostKey = { readonly type: string; readonly blob: Buffer };

/** The signature algorithms of a server with this type of key; the older ones of RSA use SHA-1. */
const algorithms: Readonly<Record<string, readonly ServerHostKeyAlgorithm[]>> = {
  'ssh-ed25519': ['ssh-ed25519'],
  'ecdsa-sha2-nistp256': ['ecdsa-sha2-nistp256'],
  'ecdsa-sha2-nistp384': ['ecdsa-sha2-nistp384'],
  'ecdsa-sha2-nistp521': ['ecdsa-sha2-nistp521'],
  'ssh-rsa': ['rsa-sha2-512', 'rsa-sha2-256'],
};

/** Reads `ssh-ed25519 AAAA…`, also with the host in front of it as ssh-keyscan prints it; undefined for other text. */
export function hostKeyOf(text: string): HostKey | undefined {
  const words = text.trim().split(/\s+/);
  const at = words.findIndex((word) => Object.hasOwn(algorithms, word));
  const type = words[at];
  const base64 = words[at + 1];
  if (
    at < 0 ||
    at > 1 ||
    type === undefined ||
    base64 === undefined ||
    !/^[A-Za-z0-9+/]+={0,2}$/.test(base64)
  ) {
    return undefined;
  }
  const blob = Buffer.from(base64, 'base64');
  const length = blob.length < 4 ? 0 : blob.readUInt32BE(0);
  return blob.subarray(4, 4 + length).toString('latin1') === type ? { type, blob } : undefined;
}

/** The signature algorithms that a server with this key uses. */
export function signatureAlgorithms(key: HostKey | undefined): ServerHostKeyAlgorithm[] {
  return [...(algorithms[key?.type ?? ''] ?? [])];
}

/** A key from its bytes, as ssh-keyscan prints it, or the fingerprint of one that is too long to show. */
export function hostKeyText(blob: Buffer): string {
  const length = blob.length < 4 ? 0 : blob.readUInt32BE(0);
  const type = blob.subarray(4, 4 + Math.min(length, 50)).toString('latin1');
  if (blob.length <= 300) return `${type} ${blob.toString('base64')}`;
  return `${type} SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`;
}
