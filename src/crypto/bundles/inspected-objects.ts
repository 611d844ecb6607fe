/** What a file of any kind holds: certificates, requests, revocation lists and keys, in PEM, DER, PKCS#12 or PKCS#7. */
import { createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { keyTypeOf } from '../key-pair.ts';
import { copyAgain, pemText, readPemBlocks, shownLabel } from '../pem.ts';
import { publicKeyPin } from '../public-key-pin.ts';
import { openCertificate } from '../x509/certificate-facts.ts';
import { type X509Library, x509Library } from '../x509/x509-library.ts';
import { type BundleSource, openKey, pemBlocksOf } from './certificate-bundle.ts';
import { looksLikePkcs12, readPkcs12 } from './pkcs12.ts';

/** An object of the file; `x509` and `key` stay in the process that reads it. */
export type InspectedObject =
  | { readonly kind: 'certificate'; readonly x509: X509Certificate }
  | { readonly kind: 'private_key'; readonly key: KeyObject }
  | { readonly kind: 'encrypted_private_key' }
  | {
      readonly kind: 'certificate_request';
      readonly subject: string;
      readonly names: readonly string[];
      readonly keyType: string;
      readonly pin: string;
      readonly isSignatureValid: boolean;
    }
  | {
      readonly kind: 'revocation_list';
      readonly issuer: string;
      readonly thisUpdate: string;
      readonly nextUpdate: string | null;
      readonly revoked: number;
    }
  | { readonly kind: 'other'; readonly label: string };

/** More than any bundle of roots holds. */
const maxObjects = 1000;

/** Labels whose content must be what they say. */
const understood =
  /^(X509 |TRUSTED )?CERTIFICATE$|CERTIFICATE REQUEST$|^X509 CRL$|^((RSA|EC|DSA) )?PRIVATE KEY$|^PKCS7$/;

const alternativeNames = '2.5.29.17';

/**
 * The objects in order. Throws `invalid_request` for a damaged or unknown file and `payload_too_large` for too many.
 */
export async function inspectedObjects(
  { name, bytes }: BundleSource,
  password: Secret<string> | undefined,
): Promise<InspectedObject[]> {
  const blocks = looksLikePkcs12(bytes)
    ? pemBlocksOf(readPkcs12(bytes, password, name))
    : readPemBlocks(pemText(bytes), name);
  const parts = blocks.length > 0 ? blocks : [{ label: '', der: bytes, encrypted: false }];
  const found: InspectedObject[] = [];
  for (const { label, der, encrypted } of parts) {
    const objects = encrypted ? [{ kind: 'encrypted_private_key' } as const] : await objectsIn(der, label);
    if (objects === undefined) throw label === '' ? unknown(name) : damaged(name, label);
    found.push(...objects);
    if (found.length > maxObjects) {
      throw new Problem('payload_too_large', {
        detail: `${name} holds more than ${maxObjects} objects.`,
        hint: 'Inspect a part of it.',
      });
    }
  }
  return found;
}

/** The objects in a block, or undefined if its bytes are not what the label says, or nothing known. */
async function objectsIn(der: Buffer, label: string): Promise<InspectedObject[] | undefined> {
  const x509 = openCertificate(der);
  if (x509 !== undefined) return [{ kind: 'certificate', x509 }];
  const key = label === '' || label.endsWith('PRIVATE KEY') ? openKey(der) : undefined;
  if (key !== undefined) {
    return [key === 'encrypted' ? { kind: 'encrypted_private_key' } : { kind: 'private_key', key }];
  }
  const known = await structured(await x509Library(), der);
  if (known !== undefined) return known;
  return label === '' || understood.test(label) ? undefined : [{ kind: 'other', label }];
}

async function structured(x509: X509Library, der: Buffer): Promise<InspectedObject[] | undefined> {
  const readers = [requestIn, listIn, certificatesIn];
  for (const read of readers) {
    try {
      return await read(x509, der);
    } catch {
      // It is none of this kind; the next reader tries.
    }
  }
  return undefined;
}

async function requestIn(x509: X509Library, der: Buffer): Promise<InspectedObject[]> {
  const request = new x509.Pkcs10CertificateRequest(der);
  const spki = createPublicKey({ key: Buffer.from(request.publicKey.rawData), format: 'der', type: 'spki' });
  const extension = request.getExtension(alternativeNames);
  const names =
    extension instanceof x509.SubjectAlternativeNameExtension
      ? extension.names.items.map(({ value }) => value)
      : [];
  const isSignatureValid = await request.verify().catch(() => false);
  const { subject } = request;
  const pin = publicKeyPin({ publicKey: spki });
  return [{ kind: 'certificate_request', subject, names, keyType: keyTypeOf(spki), pin, isSignatureValid }];
}

async function listIn(x509: X509Library, der: Buffer): Promise<InspectedObject[]> {
  const { issuer, thisUpdate, nextUpdate, entries } = new x509.X509Crl(der);
  return [
    {
      kind: 'revocation_list',
      issuer,
      thisUpdate: formatTimestamp(thisUpdate.getTime()),
      nextUpdate: nextUpdate === undefined ? null : formatTimestamp(nextUpdate.getTime()),
      revoked: entries.length,
    },
  ];
}

/** PKCS#7: signed data that has only certificates. */
async function certificatesIn(x509: X509Library, der: Buffer): Promise<InspectedObject[]> {
  const certificates = new x509.X509Certificates();
  certificates.import(der);
  return [...certificates].flatMap(({ rawData }) => {
    const opened = openCertificate(Buffer.from(rawData));
    return opened === undefined ? [] : [{ kind: 'certificate' as const, x509: opened }];
  });
}

function damaged(name: string, label: string): Problem {
  const detail = `${name} is damaged: the content of a ${shownLabel(label)} block is something else.`;
  return new Problem('invalid_request', { detail, hint: copyAgain });
}

function unknown(name: string): Problem {
  return new Problem('invalid_request', {
    detail: `${name} is no certificate, certificate request, revocation list or key.`,
    hint: 'PEM, DER, PKCS#12 and PKCS#7 files can be inspected.',
  });
}
