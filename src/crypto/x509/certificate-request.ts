/** Certificate signing requests: PKCS#10 (RFC 2986) with the names in a subjectAltName. */
import { createPublicKey } from 'node:crypto';
import type { Identifier } from '../../base/identifier.ts';
import type { Secret } from '../../base/secret.ts';
import { keyObject } from '../key-pair.ts';
import { commonNameFor, generalName, nameOf, signatureOf, x509Library } from './x509-library.ts';

/**
 * A request (DER) for a certificate with this PKCS#8 key and at least one name. The subject is the first DNS name that
 * fits into a common name, otherwise it is empty. Throws a plain error for an unsupported key type.
 */
export async function certificateRequest(
  identifiers: readonly Identifier[],
  privateKey: Secret,
): Promise<Buffer> {
  if (identifiers.length === 0) throw new Error('a certificate request needs a name');
  const x509 = await x509Library();
  const key = keyObject(privateKey);
  const algorithm = signatureOf(privateKey);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: nameOf(x509, commonNameFor(identifiers)),
    keys: {
      privateKey: key.toCryptoKey(algorithm, false, ['sign']),
      publicKey: createPublicKey(key).toCryptoKey(algorithm, true, ['verify']),
    },
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension(identifiers.map(generalName))],
  });
  return Buffer.from(request.rawData);
}
