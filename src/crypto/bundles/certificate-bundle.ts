/**
 * Turns imported files into what the vault stores: the leaf, its intermediates in order without the root, and the
 * private key. Unusable files are rejected here, with a message for the person who has to fix them.
 */
import { createPrivateKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import { copyAgain, type PemBlock, pemText, readPemBlocks } from '../pem.ts';
import { chainFrom, signsFor } from '../x509/certificate-chain.ts';
import {
  isSelfSigned,
  openCertificate,
  printable,
  titleOf,
  validityWarnings,
} from '../x509/certificate-facts.ts';
import {
  type Certificate,
  type Found,
  intermediateMissing,
  issuerMissing,
  type Key,
  keyMismatch,
  keyOfCa,
  nameOf,
  noCertificate,
  noKey,
  refusal,
  tooLarge,
} from './bundle-refusals.ts';
import { asArgument, looksLikePkcs12, type Pkcs12Contents, readPkcs12 } from './pkcs12.ts';

/** A PEM, DER or PKCS#12 file. `name` is the name that messages use. */
export type BundleSource = { readonly name: string; readonly bytes: Buffer };

export type BundleInput = {
  /** Certificate, chain and key, in one file or several. */
  readonly sources: readonly BundleSource[];
  /** The password of a PKCS#12 file. */
  readonly password?: Secret<string>;
  /** UTC milliseconds, for the warnings about validity. */
  readonly now: number;
  /**
   * Whether a CA certificate is accepted as the leaf, because plain `openssl req -x509` creates such certificates for
   * servers.
   */
  readonly authorities?: 'refused' | 'taken' | undefined;
};

export type CertificateBundle = {
  /** DER. */
  readonly leaf: Buffer;
  /** DER: from the issuing CA upwards, without the self-signed root. */
  readonly chain: Buffer[];
  /** PKCS#8 DER. */
  readonly privateKey: Secret;
  /** Warnings about accepted files: validity, missing intermediates, ignored certificates. */
  readonly warnings: string[];
};

const maxBytes = 1_048_576;
const maxCertificates = 100;
const usableKeys = /^(rsa|rsa-pss|ec|ed25519|ed448|ml-dsa-\d+)$/;
/** OpenSSL, and therefore every client, refuses to verify with larger keys. */
const maxRsaBits = 16_384;

/**
 * The certificate, chain and key in the files, which may contain more, in any order. Throws `invalid_request` or
 * `payload_too_large` with the file and a fix; messages never show key material. Read untrusted files through
 * `readBundleApart`, because the file determines how long this takes.
 */
export function readCertificateBundle({
  sources,
  password,
  now,
  authorities = 'refused',
}: BundleInput): CertificateBundle {
  const found: Found = { certificates: [], key: undefined, others: [], read: 0 };
  for (const { name, bytes } of sources) readSource({ name: printable(name), bytes }, password, found);
  const files = sources.map(({ name }) => printable(name)).join(' and ') || 'an import without files';
  if (found.certificates.length === 0) throw noCertificate(found, files);
  const { key } = found;
  if (key === undefined) throw noKey(found, files);
  const leaf = leafFor(key, found.certificates, authorities);
  const candidates = found.certificates.map(({ x509 }) => x509);
  const { chain, top } = chainFrom(leaf, candidates, now);
  const left = found.certificates.filter(({ x509 }) => ![leaf, ...chain, top].includes(x509));
  if (top === leaf && !isSelfSigned(leaf) && left.length > 0) throw issuerMissing(leaf, left);
  return {
    leaf: leaf.raw,
    chain: chain.map((certificate) => certificate.raw),
    privateKey: new Secret(key.key.export({ type: 'pkcs8', format: 'der' })),
    warnings: [
      ...[leaf, ...chain].flatMap((certificate) => validityWarnings(certificate, now)),
      ...(top === leaf && !isSelfSigned(leaf) ? [intermediateMissing(leaf)] : []),
      ...left.map(
        ({ x509, file }) => `${titleOf(x509)} in ${file} is not part of the chain and was ignored.`,
      ),
    ],
  };
}

function readSource({ name, bytes }: BundleSource, password: Secret<string> | undefined, found: Found): void {
  if (bytes.length > maxBytes) throw tooLarge(`${name} is larger than 1 MiB.`);
  const text = pemText(bytes);
  if (text.trim() === '')
    throw refusal(`${name} is empty.`, 'Check whether the program that wrote it failed.');
  const isPkcs12 = looksLikePkcs12(bytes);
  const blocks = isPkcs12 ? pemBlocksOf(readPkcs12(bytes, password, name)) : readPemBlocks(text, name);
  blocks.forEach((block, index) => {
    addBlock(block, `Block ${index + 1} of ${name}`, name, found);
  });
  if (blocks.length > 0 || addCertificate(bytes, name, found) || addKey(bytes, name, found)) return;
  throw refusal(
    `${name} contains neither a certificate nor a private key.`,
    'Import a PKCS#12 or PEM file; PEM files have lines such as -----BEGIN CERTIFICATE----- or -----BEGIN PRIVATE KEY-----.',
  );
}

export function pemBlocksOf({ certificates, privateKey }: Pkcs12Contents): PemBlock[] {
  const key = privateKey && { label: 'PRIVATE KEY', der: privateKey.expose(), encrypted: false };
  const blocks = certificates.map((der) => ({ label: 'CERTIFICATE', der, encrypted: false }));
  return key === undefined ? blocks : [...blocks, key];
}

function addBlock({ label, der, encrypted }: PemBlock, block: string, file: string, found: Found): void {
  const damaged = () => refusal(`${block} is damaged: its content is not a valid ${label}.`, copyAgain);
  if (/^(X509 |TRUSTED )?CERTIFICATE$/.test(label)) {
    if (!addCertificate(der, file, found)) throw damaged();
  } else if (/^((RSA|EC|DSA) )?PRIVATE KEY$/.test(label) && !encrypted) {
    if (!addKey(der, file, found)) throw damaged();
  } else if (/^(PKCS7|PKCS #7 SIGNED DATA|CMS)$/.test(label)) {
    const convert = `Convert it with \`openssl pkcs7 -in ${asArgument(file)} -print_certs -out chain.pem\``;
    throw refusal(
      `${file} contains certificates in the PKCS#7 format, which is not supported.`,
      `${convert} and import chain.pem.`,
    );
  } else {
    found.others.push({ label: encrypted ? 'encrypted' : label, file });
  }
}

function addCertificate(der: Buffer, file: string, found: Found): boolean {
  const x509 = openCertificate(der);
  if (x509 === undefined) return false;
  if (++found.read > maxCertificates)
    throw tooLarge(`Too many certificates: the limit is ${maxCertificates}.`);
  const known = found.certificates.some((other) => other.x509.fingerprint256 === x509.fingerprint256);
  if (!known) found.certificates.push({ x509, file });
  return true;
}

function addKey(der: Buffer, file: string, found: Found): boolean {
  const key = openKey(der);
  if (key === undefined) return false;
  if (key === 'encrypted') return found.others.push({ label: key, file }) > 0;
  const { asymmetricKeyType = '', asymmetricKeyDetails } = key;
  if (!usableKeys.test(asymmetricKeyType) || (asymmetricKeyDetails?.modulusLength ?? 0) > maxRsaBits) {
    throw refusal(
      `The private ${nameOf({ key, file })} cannot be used for TLS.`,
      'Ask the CA for a certificate with an ECDSA or RSA key.',
    );
  }
  found.key ??= { key, file };
  if (!found.key.key.equals(key)) {
    throw refusal(
      `More than one private key found: the ${nameOf(found.key)} and the ${nameOf({ key, file })}.`,
      'Import only the key that the certificate was requested with.',
    );
  }
  return true;
}

/** The key in PKCS#8, PKCS#1 or SEC1, regardless of its label, because labels are often edited by hand. */
export function openKey(der: Buffer): KeyObject | 'encrypted' | undefined {
  for (const type of ['pkcs8', 'pkcs1', 'sec1'] as const) {
    try {
      return createPrivateKey({ key: der, format: 'der', type });
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ERR_MISSING_PASSPHRASE')
        return 'encrypted';
    }
  }
  return undefined;
}

function leafFor(
  key: Key,
  certificates: readonly Certificate[],
  authorities: 'refused' | 'taken',
): X509Certificate {
  const own = certificates.map(({ x509 }) => x509).filter((x509) => x509.checkPrivateKey(key.key));
  const [authority] = own;
  if (authority === undefined) throw keyMismatch(key, certificates);
  const [leaf] = own
    .filter((certificate) => !certificate.ca || authorities === 'taken')
    .sort((a, b) => Number(a.ca) - Number(b.ca) || b.validFromDate.getTime() - a.validFromDate.getTime());
  if (leaf === undefined) throw keyOfCa(key, authority);
  if (!signsFor(key.key, leaf)) throw refusal(`The private key in ${key.file} is damaged.`, copyAgain);
  return leaf;
}
