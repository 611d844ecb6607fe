/**
 * Chains of the private CA for tests, with any validity and extensions, and checks with OpenSSL, which need
 * `needs('openssl')`.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Identifier, parseIdentifier } from '../../../src/base/identifier.ts';
import type { KeyType } from '../../../src/base/key-type.ts';
import type { Secret } from '../../../src/base/secret.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { certificateFacts } from '../../../src/crypto/x509/certificate-facts.ts';
import { issueLeaf, type LeafRequest } from '../../../src/crypto/x509/leaf-certificate.ts';
import type { PermittedNames } from '../../../src/crypto/x509/name-constraints.ts';
import { issueIntermediate, issueRoot, type X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import { openssl } from './openssl-chain.ts';

/** Each with its private key. */
export type PrivateChain = {
  readonly root: X509Issuer;
  readonly intermediate: X509Issuer;
  readonly leaf: X509Issuer;
};

/** The default validity, which TLS accepts on any day. */
export const dates = { notBefore: Date.UTC(2020, 0, 1), notAfter: Date.UTC(2049, 0, 1) };

const defaultNames = ['www.example.com', '*.example.org', '127.0.0.1', '2001:db8::1'];

const dir = mkdtempSync(join(tmpdir(), 'vault-x509-'));
// Not with the hooks of the test runner, because benchmarks also create chains.
process.once('exit', () => rmSync(dir, { recursive: true, force: true }));

type ChainOptions = {
  readonly keyType?: KeyType;
  readonly notAfter?: number;
  readonly leaf?: Partial<LeafRequest>;
  readonly leafKeyType?: KeyType;
  /** The names that root and intermediate permit. */
  readonly permitted?: PermittedNames;
};

/** A chain with keys of one type; `leaf` changes the request for the leaf. */
export async function makeChain({
  keyType = 'ec256',
  notAfter = dates.notAfter,
  leaf,
  leafKeyType = keyType,
  permitted,
}: ChainOptions = {}): Promise<PrivateChain> {
  const [rootKey, intermediateKey] = await Promise.all([
    generatePrivateKey(keyType),
    generatePrivateKey(keyType),
  ]);
  const terms = { notBefore: dates.notBefore, notAfter, permitted };
  const root = await withKey(rootKey, (privateKey) =>
    issueRoot({ ...terms, commonName: 'Test Root', privateKey, serial: randomBytes(16) }),
  );
  const intermediate = await withKey(intermediateKey, (privateKey) =>
    issueIntermediate({
      ...terms,
      commonName: 'Test Intermediate',
      publicKey: publicKeyOf(privateKey),
      serial: randomBytes(16),
      issuer: root,
    }),
  );
  return { root, intermediate, leaf: await makeLeaf(intermediate, leaf, leafKeyType) };
}

/** A leaf, by default for the usual names. */
export async function makeLeaf(
  issuer: X509Issuer,
  request: Partial<LeafRequest> = {},
  keyType: KeyType = 'ec256',
) {
  return withKey(await generatePrivateKey(keyType), (privateKey) =>
    issueLeaf({
      ...dates,
      identifiers: defaultNames.map(identifier),
      publicKey: publicKeyOf(privateKey),
      serial: randomBytes(16),
      issuer,
      ...request,
    }),
  );
}

async function withKey(privateKey: Secret, issue: (key: Secret) => Promise<Buffer>): Promise<X509Issuer> {
  return { privateKey, certificate: await issue(privateKey) };
}

/** Parses a valid identifier. */
export function identifier(text: string): Identifier {
  const parsed = parseIdentifier(text);
  assert(parsed, text);
  return parsed;
}

/** Fails with the error of `openssl verify -x509_strict`; `args` are added to its options. */
export function assertVerifies(chain: PrivateChain, ...args: readonly string[]): void {
  assert.match(verify(chain, ...args), /: OK$/);
}

/** Returns the output of `openssl verify -x509_strict`. Throws its error output. */
export function verify({ root, intermediate, leaf }: PrivateChain, ...args: readonly string[]): string {
  const trusted = ['-no-CApath', '-no-CAstore', '-CAfile', pemFile(root.certificate)];
  const given = ['-untrusted', pemFile(intermediate.certificate), ...args, pemFile(leaf.certificate)];
  return opensslSays('verify', '-x509_strict', ...trusted, ...given);
}

/** One extension as printed by OpenSSL: a line with its name and `critical`, then its value. */
export function extensionOf({ certificate }: X509Issuer, name: string): string {
  return opensslSays('x509', '-in', pemFile(certificate), '-noout', '-ext', name);
}

/** Writes the certificate to a PEM file and returns its path. */
export function pemFile(certificate: Buffer): string {
  const path = join(dir, `${certificateFacts(certificate).fingerprintSha256}.pem`);
  writeFileSync(path, encodePem('CERTIFICATE', certificate));
  return path;
}

/** What the openssl program prints to its standard output. */
export function opensslSays(...args: readonly string[]): string {
  return openssl(dir, ...args)
    .toString()
    .trim();
}
