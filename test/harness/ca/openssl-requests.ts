/** Certificate signing requests as OpenSSL makes them, each with a new key in a folder of its own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `-newkey` and its options for common keys. */
export const opensslKeys = {
  ec256: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
  ec384: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
  rsa2048: ['-newkey', 'rsa:2048'],
  rsa3072: ['-newkey', 'rsa:3072'],
  ed25519: ['-newkey', 'ed25519'],
} as const;

export type RequestWish = {
  /** Options of a new key, or a PEM key to use. */
  readonly key?: readonly string[] | { readonly pem: string };
  readonly subject?: string;
  /** The value of subjectAltName, such as `DNS:a.example.test`. */
  readonly names?: string;
  /** Further requested extensions, such as `basicConstraints=CA:TRUE`. */
  readonly extensions?: readonly string[];
  readonly options?: readonly string[];
};

/** The request and its private key, both PEM. */
export function opensslRequest({
  key = opensslKeys.ec256,
  subject = '/',
  names,
  extensions = [],
  options = [],
}: RequestWish): { readonly csr: string; readonly key: string } {
  const folder = mkdtempSync(join(tmpdir(), 'request-'));
  try {
    const path = join(folder, 'key.pem');
    const san = names === undefined ? [] : [`subjectAltName=${names}`];
    const added = [...san, ...extensions].flatMap((extension) => ['-addext', extension]);
    const isGiven = 'pem' in key;
    if (isGiven) writeFileSync(path, key.pem);
    const source = isGiven ? ['-key', path] : [...key, '-nodes', '-keyout', path];
    const csr = execFileSync('openssl', ['req', '-new', ...source, '-subj', subject, ...added, ...options], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return { csr, key: readFileSync(path, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The DER of a PEM request, and PEM of DER. */
export function derOf(csr: string): Buffer {
  return Buffer.from(csr.replace(/-----[^-]+-----|\s/g, ''), 'base64');
}
