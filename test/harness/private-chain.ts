/**
 * Chains of the private CA for tests, with any terms, and what OpenSSL says about them. Tests that ask it need
 * `needs('openssl')`.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Identifier, parseIdentifier } from '../../src/base/identifier.ts';
import type { KeyType } from '../../src/base/key-type.ts';
import type { Secret } from '../../src/base/secret.ts';
import { certificateFacts } from '../../src/crypto/certificate-facts.ts';
import { generatePrivateKey, publicKeyOf } from '../../src/crypto/key-pair.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import {
  issueIntermediate,
  issueLeaf,
  issueRoot,
  type LeafRequest,
  type X509Issuer,
} from '../../src/crypto/x509-issuance.ts';
import { openssl } from './openssl-chain.ts';

/** Each with its private key. */
export type PrivateChain = {
  readonly root: X509Issuer;
  readonly intermediate: X509Issuer;
  readonly leaf: X509Issuer;
};

/** The validity of what is made here unless a test says otherwise: TLS accepts it on any day these tests may run. */
export const dates = { notBefore: Date.UTC(2020, 0, 1), notAfter: Date.UTC(2049, 0, 1) };

const usualNames = ['www.example.com', '*.example.org', '127.0.0.1', '2001:db8::1'];

const dir = mkdtempSync(join(tmpdir(), 'vault-x509-'));
// Not by the test runner: benchmarks make chains as well.
process.once('exit', () => rmSync(dir, { recursive: true, force: true }));

type ChainOptions = {
  readonly keyType?: KeyType;
  readonly notAfter?: number;
  readonly leaf?: Partial<LeafRequest>;
};

/** A chain whose keys are all of one type; `leaf` changes what is asked for at the end of it. */
export async function makeChain({
  keyType = 'ec256',
  notAfter = dates.notAfter,
  leaf,
}: ChainOptions = {}): Promise<PrivateChain> {
  const [rootKey, intermediateKey] = await Promise.all([
    generatePrivateKey(keyType),
    generatePrivateKey(keyType),
  ]);
  const terms = { notBefore: dates.notBefore, notAfter };
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
  return { root, intermediate, leaf: await makeLeaf(intermediate, leaf, keyType) };
}

/** A leaf for the usual names, unless the request says otherwise. */
export async function makeLeaf(
  issuer: X509Issuer,
  request: Partial<LeafRequest> = {},
  keyType: KeyType = 'ec256',
) {
  return withKey(await generatePrivateKey(keyType), (privateKey) =>
    issueLeaf({
      ...dates,
      identifiers: usualNames.map(identifier),
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

/** The identifier in a text that is known to be one. */
export function identifier(text: string): Identifier {
  const parsed = parseIdentifier(text);
  assert(parsed, text);
  return parsed;
}

/** Fails with the complaint of `openssl verify -x509_strict`; `args` are added to its options. */
export function assertVerifies(chain: PrivateChain, ...args: readonly string[]): void {
  assert.match(verify(chain, ...args), /: OK$/);
}

/** What `openssl verify -x509_strict` says. Throws with its complaint. */
export function verify({ root, intermediate, leaf }: PrivateChain, ...args: readonly string[]): string {
  const trusted = ['-no-CApath', '-no-CAstore', '-CAfile', pemFile(root.certificate)];
  const given = ['-untrusted', pemFile(intermediate.certificate), ...args, pemFile(leaf.certificate)];
  return opensslSays('verify', '-x509_strict', ...trusted, ...given);
}

/** One extension in the words of OpenSSL: a line for its name and `critical`, then its value. */
export function extensionOf({ certificate }: X509Issuer, name: string): string {
  return opensslSays('x509', '-in', pemFile(certificate), '-noout', '-ext', name);
}

/** The path of a PEM file with the certificate. */
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
