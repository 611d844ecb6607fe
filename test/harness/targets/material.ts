/** Certificates as deploy targets get them: two versions from one CA, each with a key of its own. */
import { Secret } from '../../../src/base/secret.ts';
import { formatTimestamp } from '../../../src/base/timestamp.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { certificateFacts } from '../../../src/crypto/x509/certificate-facts.ts';
import type { X509Issuer } from '../../../src/crypto/x509/x509-issuance.ts';
import type { Material } from '../../../src/targets/target.ts';
import { makeChain, makeLeaf } from '../ca/private-chain.ts';

export type Materials = {
  readonly first: Material;
  readonly second: Material;
  /** A certificate of the same CA for 127.0.0.1, for a server, and the root that clients trust. */
  readonly server: { readonly cert: string; readonly key: string };
  readonly ca: string;
};

/** Issues versions 1 and 2 of the certificate `web`. */
export async function makeMaterials(): Promise<Materials> {
  const { root, intermediate, leaf } = await makeChain();
  const [first, second] = [await makeLeaf(intermediate), await makeLeaf(intermediate)];
  return {
    first: materialOf(first, intermediate, 1),
    second: materialOf(second, intermediate, 2),
    server: {
      cert: certificatePem(leaf) + certificatePem(intermediate),
      key: keyPem(leaf),
    },
    ca: certificatePem(root),
  };
}

function materialOf(leaf: X509Issuer, intermediate: X509Issuer, version: number): Material {
  const { domains, fingerprintSha256, notAfter } = certificateFacts(leaf.certificate);
  const [certificate, chain] = [certificatePem(leaf), certificatePem(intermediate)];
  return {
    ...{ name: 'web', version, fingerprint: fingerprintSha256, notAfter: formatTimestamp(notAfter) },
    ...{ domains, certificate, chain, fullchain: certificate + chain },
    privateKey: new Secret(keyPem(leaf)),
  };
}

function certificatePem({ certificate }: X509Issuer): string {
  return encodePem('CERTIFICATE', certificate);
}

function keyPem({ privateKey }: X509Issuer): string {
  return encodePem('PRIVATE KEY', privateKey.expose());
}
