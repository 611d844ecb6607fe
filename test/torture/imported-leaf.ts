/** Certificates of another CA, which users import. */
import { encodePem } from '../../src/crypto/pem.ts';
import { certificateFacts } from '../../src/crypto/x509/certificate-facts.ts';
import { makeLeaf, type PrivateChain } from '../harness/ca/private-chain.ts';

/** A new certificate with its chain and key as PEM texts. */
export async function newLeaf({ intermediate }: PrivateChain) {
  const leaf = await makeLeaf(intermediate);
  return {
    fullchain: [leaf, intermediate].map((x) => encodePem('CERTIFICATE', x.certificate)).join(''),
    key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
    fingerprint: certificateFacts(leaf.certificate).fingerprintSha256,
  };
}
