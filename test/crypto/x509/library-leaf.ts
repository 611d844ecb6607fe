/** Leaf certificates as the X.509 library builds them, to compare our own with. */
import { createPublicKey, X509Certificate } from 'node:crypto';
import { isAddress } from '../../../src/base/identifier.ts';
import { parseSubjectField, subjectFields } from '../../../src/base/leaf-names.ts';
import type { LeafRequest } from '../../../src/crypto/x509/leaf-certificate.ts';
import type { X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import {
  commonNameFor,
  generalName,
  sign,
  type X509Library,
  x509Library,
} from '../../../src/crypto/x509/x509-library.ts';

type Request = Omit<LeafRequest, 'issuer'> & { readonly issuer: X509Issuer };

/** The leaf (DER) of this request. */
export async function libraryLeaf(request: Request): Promise<Buffer> {
  const { identifiers, uris = [], emails = [], subject, usage = 'both', publicKey, issuer, crlUrl } = request;
  const x509 = await x509Library();
  const names = [
    ...identifiers.map(generalName),
    ...uris.map((value) => ({ type: 'url', value }) as const),
    ...emails.map((value) => ({ type: 'email', value }) as const),
  ];
  const commonName = commonNameFor(identifiers.filter((identifier) => !isAddress(identifier)).slice(0, 1));
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const sides = { server: [serverAuth], client: [clientAuth], both: [serverAuth, clientAuth] };
  const { digitalSignature, keyEncipherment } = x509.KeyUsageFlags;
  const { asymmetricKeyType } = createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
  const enciphers = asymmetricKeyType === 'rsa' && usage !== 'client';
  const certificate = new x509.X509Certificate(issuer.certificate);
  const own = certificate.getExtension(x509.SubjectKeyIdentifierExtension);
  const extensions = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(enciphers ? digitalSignature | keyEncipherment : digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(sides[usage]),
    ...(names.length === 0
      ? []
      : [new x509.SubjectAlternativeNameExtension(names, commonName === undefined && subject === undefined)]),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ...(crlUrl === undefined ? [] : [new x509.CRLDistributionPointsExtension([crlUrl])]),
    own === null
      ? await x509.AuthorityKeyIdentifierExtension.create(certificate.publicKey)
      : new x509.AuthorityKeyIdentifierExtension(own.keyId),
  ];
  const { serial, notBefore, notAfter } = request;
  const draft = { serial, notBefore, notAfter, publicKey, extensions };
  const draftSubject = subjectOf(x509, subject ?? [], commonName);
  return sign(x509, { ...draft, subject: draftSubject }, certificate.subjectName, issuer.privateKey);
}

function subjectOf(x509: X509Library, given: readonly string[], commonName: string | undefined) {
  const fields = new Map(
    given.flatMap((text) => parseSubjectField(text) ?? []).map((one) => [one.field, one.value]),
  );
  if (!fields.has('CN') && commonName !== undefined) fields.set('CN', commonName);
  return new x509.Name(
    subjectFields.flatMap((field) => {
      const value = fields.get(field);
      if (value === undefined) return [];
      return [{ [field]: [field === 'C' ? { printableString: value } : { utf8String: value }] }];
    }),
  );
}

/** What a certificate (DER) has in front of its signature, which differs each time for most keys. */
export function signedPart(certificate: Buffer): string {
  const { raw, signatureAlgorithm } = new X509Certificate(certificate);
  // The first length is that of the whole; the second is that of the signed part.
  const head = (at: number) => {
    const first = raw.readUInt8(at + 1);
    const size = first < 0x80 ? 0 : first & 0x7f;
    const length = size === 0 ? first : raw.readUIntBE(at + 2, size);
    return { begin: at + 2 + size, length };
  };
  const { begin } = head(0);
  const inner = head(begin);
  return `${signatureAlgorithm} ${raw.toString('hex', begin, inner.begin + inner.length)}`;
}
