/** Certificate signing requests (PKCS#10, RFC 2986) for the certificate of a CA, which another CA is asked to sign. */
import { createPublicKey } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import { keyObject, publicKeyOf } from '../key-pair.ts';
import { nameOf, signatureOf, x509Library } from './x509-library.ts';

export type AuthorityRequest = {
  readonly commonName: string;
  /** PKCS#8 DER. */
  readonly privateKey: Secret;
  /** How many CAs may follow it in a chain. */
  readonly pathLength: number;
};

/**
 * A request (DER) for a CA certificate that signs certificates and CRLs. CAs that copy the extensions of requests need
 * nothing else; others have a template for subordinate CAs.
 */
export async function authorityRequest({
  commonName,
  privateKey,
  pathLength,
}: AuthorityRequest): Promise<Buffer> {
  const x509 = await x509Library();
  const key = keyObject(privateKey);
  const algorithm = signatureOf(privateKey);
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: nameOf(x509, commonName),
    keys: {
      privateKey: key.toCryptoKey(algorithm, false, ['sign']),
      publicKey: createPublicKey(key).toCryptoKey(algorithm, true, ['verify']),
    },
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, pathLength, true),
      new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(publicKeyOf(privateKey)),
    ],
  });
  return Buffer.from(request.rawData);
}
