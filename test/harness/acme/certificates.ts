/** Checks of issued certificates with OpenSSL and Pebble. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Pebble } from '../ca/pebble.ts';

/** Splits a PEM text into its certificates. */
export function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g) ?? [];
}

/** The output of `openssl verify` for the first certificate of `fullchain`, with only this root trusted. */
export function verify(dir: string, fullchain: string, root: string): string {
  const [leaf = '', ...chain] = certificatesIn(fullchain);
  const files = { 'root.pem': root, 'chain.pem': chain.join(''), 'leaf.pem': leaf };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, file), text);
  const args = ['verify', '-CAfile', 'root.pem', '-untrusted', 'chain.pem', 'leaf.pem'];
  return execFileSync('openssl', args, {
    cwd: dir,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();
}

/** Pebble's status of the first certificate of a PEM text: `Valid` or `Revoked`, and the number of the reason. */
export async function certificateStatus(
  { managementUrl, caPem: ca }: Pebble,
  pem: string,
): Promise<{ status: string | undefined; reason: number | undefined }> {
  const serial = new X509Certificate(pem).serialNumber.toLowerCase();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  get(`${managementUrl}/cert-status-by-serial/${serial}`, { ca, agent: false }, resolve).on('error', reject);
  const answer: unknown = JSON.parse(await text(await promise));
  const { Status: status, Reason: reason } = answer as { Status?: string; Reason?: number };
  return { status, reason };
}

/** The number of certificates that this Pebble has issued. */
export function issuedBy({ log }: Pebble): number {
  return log().match(/Issued certificate serial/g)?.length ?? 0;
}
