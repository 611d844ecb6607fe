/** The certificate that answers a tls-alpn-01 challenge (RFC 8737 §3, for addresses RFC 8738 §6). */
import { hash } from 'node:crypto';
import type { Identifier } from '../../base/identifier.ts';
import { Secret } from '../../base/secret.ts';
import { generatePrivateKey, publicKeyOf } from '../key-pair.ts';
import { encodePem } from '../pem.ts';
import { generalName, nameOf, sign, type X509Terms, x509Library } from './x509-library.ts';

/** In the form that node:tls takes: PEM, the key as PKCS#8. */
export type ValidationCertificate = {
  readonly certificate: string;
  readonly privateKey: Secret<string>;
};

/** id-pe-acmeIdentifier. */
const acmeIdentifier = '1.3.6.1.5.5.7.1.31';

/**
 * A self-signed certificate for one identifier (without `*.`), with a new key and the digest of the key authorization
 * (RFC 8555 §8.1) in a critical extension.
 */
export async function validationCertificate(
  identifier: Identifier,
  keyAuthorization: string,
  terms: X509Terms,
): Promise<ValidationCertificate> {
  const x509 = await x509Library();
  const privateKey = await generatePrivateKey('ec256');
  const subject = nameOf(x509, 'ACME validation');
  const digest = hash('sha256', keyAuthorization, 'buffer');
  const extensions = [
    new x509.SubjectAlternativeNameExtension([generalName(identifier)]),
    new x509.Extension(acmeIdentifier, true, octetString(digest)),
  ];
  const draft = { ...terms, subject, publicKey: publicKeyOf(privateKey), extensions };
  const certificate = await sign(x509, draft, subject, privateKey);
  return {
    certificate: encodePem('CERTIFICATE', certificate),
    privateKey: new Secret(encodePem('PRIVATE KEY', privateKey.expose())),
  };
}

/** DER of an OCTET STRING shorter than 128 bytes. */
function octetString(content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(0x04, content.length), content]);
}
