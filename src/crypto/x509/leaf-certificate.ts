/**
 * Leaf certificates of a private CA (RFC 5280), encoded here: the library builds an object for each part and reads the
 * issuer's certificate for each leaf, which takes several times as long as the signature.
 */
import { isIPv4 } from 'node:net';
import { type Identifier, isAddress } from '../../base/identifier.ts';
import { parseSubjectField, subjectFields, type Usage } from '../../base/leaf-names.ts';
import {
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  setOf,
  tagged,
} from '../der.ts';
import { DerReader, derTags } from '../der-reader.ts';
import { keyIdentifierOf, opened, type SigningAuthority } from './signing-authority.ts';
import type { X509Issuer } from './x509-issuance.ts';
import { commonNameFor, positive, wholeSeconds, type X509Terms } from './x509-library.ts';
import { criticalExtension, extension, time } from './x509-values.ts';

export type LeafRequest = X509Terms & {
  /** The subject's common name is the first DNS name, unless `subject` has one. */
  readonly identifiers: readonly Identifier[];
  readonly uris?: readonly string[] | undefined;
  readonly emails?: readonly string[] | undefined;
  /** Fields such as `CN=alice`, each once. */
  readonly subject?: readonly string[] | undefined;
  /** For which side of TLS; by default both. */
  readonly usage?: Usage | undefined;
  /** SPKI DER. */
  readonly publicKey: Buffer;
  readonly issuer: SigningAuthority | X509Issuer;
  /** Where the CRL of the issuer is (RFC 5280 §4.2.1.13). */
  readonly crlUrl?: string | undefined;
};

/** The identifiers of the extensions. */
const extensions = {
  basicConstraints: objectIdentifier('2.5.29.19'),
  keyUsage: objectIdentifier('2.5.29.15'),
  extendedKeyUsage: objectIdentifier('2.5.29.37'),
  subjectAltName: objectIdentifier('2.5.29.17'),
  subjectKeyIdentifier: objectIdentifier('2.5.29.14'),
  crlDistributionPoints: objectIdentifier('2.5.29.31'),
  authorityKeyIdentifier: objectIdentifier('2.5.29.35'),
} as const;

/** The identifiers of the fields of a subject (§A.1). */
const fieldTypes = {
  C: objectIdentifier('2.5.4.6'),
  ST: objectIdentifier('2.5.4.8'),
  L: objectIdentifier('2.5.4.7'),
  O: objectIdentifier('2.5.4.10'),
  OU: objectIdentifier('2.5.4.11'),
  CN: objectIdentifier('2.5.4.3'),
} as const;

const serverAuth = objectIdentifier('1.3.6.1.5.5.7.3.1');
const clientAuth = objectIdentifier('1.3.6.1.5.5.7.3.2');
const sides = { server: [serverAuth], client: [clientAuth], both: [serverAuth, clientAuth] } as const;

const rsaEncryption = objectIdentifier('1.2.840.113549.1.1.1');

/**
 * KeyUsage as a BIT STRING without its trailing zeros: digitalSignature, with or without keyEncipherment (§4.2.1.3).
 */
const signs = tagged(0x03, Buffer.of(7, 0x80));
const signsAndEnciphers = tagged(0x03, Buffer.of(5, 0xa0));

/** The numbers of GeneralName (§4.2.1.6). */
const email = 1;
const dns = 2;
const uri = 6;
const ip = 7;

/** Version 3. */
const version = explicit(0, integer(2));

/** No leaf is a CA: the default, which DER leaves out. */
const basicConstraints = criticalExtension(extensions.basicConstraints, sequence());

/**
 * A leaf (DER) with these names. If no DNS name fits into a common name and no subject is given, the subject is empty
 * and the names are critical (RFC 5280 §4.2.1.6). Throws a plain error if it would outlive its issuer, and as
 * `SigningAuthority`.
 */
export async function issueLeaf(request: LeafRequest): Promise<Buffer> {
  const { publicKey, serial, notBefore, notAfter } = request;
  const issuer = opened(request.issuer);
  const subject = subjectOf(request);
  const names = namesOf(request);
  if (names.length === 0 && subject.length === 0) throw new Error('a leaf needs a name');
  if (wholeSeconds(notAfter) > issuer.notAfter) {
    throw new Error('the certificate would be valid for longer than its issuer');
  }
  const certificate = sequence(
    version,
    integer(positive(serial)),
    issuer.algorithm,
    issuer.name,
    sequence(time(notBefore), time(notAfter)),
    sequence(...subject),
    publicKey,
    explicit(3, sequence(...extensionsOf(request, issuer, names, subject.length === 0))),
  );
  return issuer.signed(certificate);
}

function extensionsOf(
  { usage = 'both', publicKey, crlUrl }: LeafRequest,
  issuer: SigningAuthority,
  names: readonly Buffer[],
  isNameless: boolean,
): Buffer[] {
  const alternative = isNameless ? criticalExtension : extension;
  return [
    basicConstraints,
    criticalExtension(extensions.keyUsage, keyUsage(publicKey, usage)),
    extension(extensions.extendedKeyUsage, sequence(...sides[usage])),
    ...(names.length === 0 ? [] : [alternative(extensions.subjectAltName, sequence(...names))]),
    extension(extensions.subjectKeyIdentifier, octetString(keyIdentifierOf(publicKey))),
    ...(crlUrl === undefined
      ? []
      : [extension(extensions.crlDistributionPoints, distributionPoints(crlUrl))]),
    extension(extensions.authorityKeyIdentifier, sequence(implicit(0, issuer.keyIdentifier))),
  ];
}

/** The fields of the subject in the usual order, each as a RelativeDistinguishedName. */
function subjectOf({ identifiers, subject = [] }: LeafRequest): Buffer[] {
  const given = new Map(
    subject.flatMap((text) => parseSubjectField(text) ?? []).map((one) => [one.field, one.value]),
  );
  const first = commonNameFor(identifiers.filter((identifier) => !isAddress(identifier)).slice(0, 1));
  if (!given.has('CN') && first !== undefined) given.set('CN', first);
  return subjectFields.flatMap((field) => {
    const value = given.get(field);
    if (value === undefined) return [];
    // The country is a PrintableString (§A.1), the others are UTF8Strings.
    const text = tagged(field === 'C' ? 0x13 : 0x0c, Buffer.from(value));
    return [setOf(sequence(fieldTypes[field], text))];
  });
}

/** The entries of the subjectAltName. */
function namesOf({ identifiers, uris = [], emails = [] }: LeafRequest): Buffer[] {
  return [
    ...identifiers.map((one) => (isAddress(one) ? implicit(ip, addressBytes(one)) : named(dns, one))),
    ...uris.map((text) => named(uri, text)),
    ...emails.map((text) => named(email, text)),
  ];
}

function named(type: number, text: string): Buffer {
  return implicit(type, Buffer.from(text, 'latin1'));
}

/** Four or sixteen bytes. An identifier has no IPv4 address in the form of IPv6 with dots. */
function addressBytes(address: Identifier): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const [before = [], after = []] = address
    .split('::')
    .map((part) => part.split(':').filter((text) => text !== ''));
  const zeros = Array<string>(8 - before.length - after.length).fill('0');
  const digits = [...before, ...zeros, ...after].map((group) => group.padStart(4, '0'));
  return Buffer.from(digits.join(''), 'hex');
}

/** Only RSA keys of servers encipher keys, as in TLS 1.2 without ephemeral keys (§4.2.1.3, §4.2.1.12). */
function keyUsage(publicKey: Buffer, usage: Usage): Buffer {
  const algorithm = new DerReader(publicKey).enter(derTags.sequence).enter(derTags.sequence);
  const isRsa = algorithm.take(derTags.objectIdentifier).whole.equals(rsaEncryption);
  return isRsa && usage !== 'client' ? signsAndEnciphers : signs;
}

/** One DistributionPoint with one URL as its full name (§4.2.1.13). */
function distributionPoints(url: string): Buffer {
  return sequence(sequence(tagged(0xa0, tagged(0xa0, named(uri, url)))));
}
