/** Certificates, chains and keys for the tests of imports, made by openssl once per process, and short ways to say files. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import {
  type BundleSource,
  type CertificateBundle,
  readCertificateBundle,
} from '../../src/crypto/certificate-bundle.ts';
import { issue, makeChain, openssl } from './openssl-chain.ts';

export const dir = mkdtempSync(join(tmpdir(), 'certificate-bundle-'));
after(() => rmSync(dir, { recursive: true }));
export const now = Date.UTC(2030, 0, 1);
export const year = 365 * 86_400_000;

function makeFixtures() {
  const { root, intermediates, leaf } = makeChain(dir);
  const [upper, lower] = intermediates;
  const stranger = makeChain(dir, { label: 'Stranger' });
  const expiredLower = issue(dir, 'expired-lower', {
    keyOf: lower,
    issuer: upper,
    role: 'authority',
    subject: '/O=Test/CN=Test Intermediate 2',
    notAfter: now - year,
  });
  const aged = (name: string, notBefore: number, notAfter: number) =>
    issue(dir, name, { keyOf: leaf, issuer: lower, subject: '/CN=www.example.com', notBefore, notAfter });
  return {
    root,
    upper,
    lower,
    leaf,
    stranger,
    expiredLower,
    older: aged('older', now - 2 * year, now + 2 * year),
    expired: aged('expired', now - 2 * year, now - year),
    future: aged('future', now + year, now + 2 * year),
    own: issue(dir, 'own', { subject: '/CN=own.example.com' }),
    accidental: issue(dir, 'accidental', { role: 'by default', subject: '/CN=printer.example.com' }),
    underRoot: issue(dir, 'under-root', { issuer: root }),
    rsa: issue(dir, 'rsa', { keyAlgorithm: 'rsa2048', issuer: lower }),
    dsa: issue(dir, 'dsa', { keyAlgorithm: 'dsa', issuer: lower }),
  };
}

let made: ReturnType<typeof makeFixtures> | undefined;
export function fixtures() {
  made ??= makeFixtures();
  return made;
}
export type Fixtures = ReturnType<typeof makeFixtures>;

export type Files = Record<string, string | Buffer>;
export const sourcesOf = (files: Files): BundleSource[] =>
  Object.entries(files).map(([name, content]) => ({ name, bytes: Buffer.from(content) }));
export const read = (files: Files, at = now, password?: string): CertificateBundle =>
  readCertificateBundle({
    sources: sourcesOf(files),
    now: at,
    ...(password !== undefined && { password: new Secret(password) }),
  });
export const pemOf = (...issued: { certificatePem: string }[]) =>
  issued.map((one) => one.certificatePem).join('');
export const raw = (pem: string) => new X509Certificate(pem).raw;
export const asKey = (pem: string, type: 'pkcs1' | 'pkcs8' | 'sec1') =>
  createPrivateKey(pem).export({ type, format: 'pem' }).toString();
export const relabel = (pem: string, label: string) => pem.replace(/(BEGIN|END) [A-Z0-9 ]+/g, `$1 ${label}`);
export const p12 = (...options: string[]) =>
  openssl(dir, 'pkcs12', '-export', '-passout', 'pass:secret', ...options);
