/**
 * The certificate that the vault serves HTTPS with: a row like all others, so that it is renewed, imported and moved to
 * another issuer like all others. Where there is none yet, the private CA makes one.
 */
import type { CertName } from '../../base/cert-name.ts';
import type { Identifier } from '../../base/identifier.ts';
import { defaultKeyType } from '../../base/key-type.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import { encodePem } from '../../crypto/pem.ts';
import { findVersion } from '../../db/tables/certificate-versions.ts';
import { findCertificate } from '../../db/tables/certificates.ts';
import { system } from '../audit/audit.ts';
import type { DatabaseContext, KeyringContext, SecretsContext } from '../contexts.ts';
import { issueFromLocalCa, localCaName } from '../issuance/local-ca.ts';
import type { QueueContext } from '../renewals/renewal-queue.ts';
import { openVersionKey } from '../versions/versions.ts';
import { createCertificate } from './certificates.ts';

export type OwnCertificate = {
  /** Undefined for one that is only made for the moment, and not kept. */
  readonly version: number | undefined;
  /** Leaf and intermediates, PEM. */
  readonly fullchain: string;
  /** PEM. */
  readonly privateKey: Secret;
  readonly source: 'acme' | 'local-ca' | 'import';
};

/**
 * Makes the certificate where no certificate has this name: from the private CA, for these names, with a key that stays
 * the same at renewals, so that clients can pin it. Says whether it did. Throws OperatorError without a name to make it for.
 */
export async function ensureOwnCertificate(
  vault: SecretsContext & QueueContext,
  name: CertName,
  domains: readonly Identifier[],
): Promise<boolean> {
  if ((await findCertificate(vault.db.reader, name)) !== undefined) return false;
  if (domains.length === 0) {
    throw new OperatorError(
      `there is no certificate called "${name}" yet, and nothing says for which host to make it`,
      {
        hint: 'Name the address where clients find the vault, such as --public-url https://vault.example.com, or listen on one address instead of all.',
      },
    );
  }
  try {
    await createCertificate(vault, system, {
      name,
      domains: [...domains],
      issuer: localCaName,
      key_type: defaultKeyType,
      reuse_key: true,
    });
    return true;
  } catch (error) {
    // Another process was faster.
    if (error instanceof Problem && error.code === 'certificate_exists') return false;
    throw error;
  }
}

/** The current version of the certificate; undefined while nothing was issued for it, or where it was deleted. */
export async function currentOwnCertificate(
  vault: DatabaseContext & KeyringContext,
  name: CertName,
): Promise<OwnCertificate | undefined> {
  const { reader } = vault.db;
  const certificate = await findCertificate(reader, name);
  if (certificate === undefined || certificate.current_version === null) return undefined;
  const row = await findVersion(reader, certificate.id, certificate.current_version);
  if (row === undefined) return undefined;
  const { version, certificate_pem, chain_pem, source } = row;
  return { version, fullchain: certificate_pem + chain_pem, privateKey: openVersionKey(vault, row), source };
}

/**
 * A certificate of the private CA for the names of one that cannot be served yet, with a key of its own; it is not kept.
 * Whoever waits for a public CA, or has to mend something, reaches the vault meanwhile.
 */
export async function temporaryCertificate(
  vault: SecretsContext,
  name: CertName,
  domains: readonly Identifier[],
): Promise<OwnCertificate> {
  const certificate = await findCertificate(vault.db.reader, name);
  const named = certificate === undefined ? [] : (JSON.parse(certificate.domains) as Identifier[]);
  const privateKey = await generatePrivateKey(defaultKeyType);
  const { leaf, chain } = await issueFromLocalCa(vault, {
    identifiers: [...new Set([...domains, ...named])],
    privateKey,
    lifetime: undefined,
  });
  return {
    version: undefined,
    fullchain: [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join(''),
    privateKey: new Secret(Buffer.from(encodePem('PRIVATE KEY', privateKey.expose()))),
    source: 'local-ca',
  };
}
