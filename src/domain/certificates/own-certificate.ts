/**
 * The certificate that the vault serves HTTPS with. It is an ordinary certificate that can be renewed, imported and
 * moved to another issuer. If it does not exist yet, the private CA issues it.
 */
import type { CertName } from '../../base/cert-name.ts';
import type { Identifier } from '../../base/identifier.ts';
import { parseJson } from '../../base/json.ts';
import { defaultKeyType } from '../../base/key-type.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import { encodePem } from '../../crypto/pem.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { findCertificate } from '../../db/tables/certificates/certificates.ts';
import { system } from '../audit/audit.ts';
import type { DatabaseContext, KeyringContext, SecretsContext } from '../contexts.ts';
import type { ZoneContext } from '../dns-providers/wildcard-zones.ts';
import { settingsOfCa } from '../private-ca/ca-settings.ts';
import { companyChain } from '../private-ca/company-root.ts';
import { forbiddenBy } from '../private-ca/inherited-constraints.ts';
import { issueFromLocalCa, localCa, localCaName } from '../private-ca/local-ca.ts';
import { forbiddenName } from '../private-ca/permitted-names.ts';
import type { QueueContext } from '../renewals/renewal-queue.ts';
import { holdsKey, openVersionKey } from '../versions/versions.ts';
import { createCertificate } from './certificates.ts';

export type OwnCertificate = {
  /** Undefined for a temporary certificate, which is not stored. */
  readonly version: number | undefined;
  /** Leaf and intermediates, PEM. */
  readonly fullchain: string;
  /** PEM. */
  readonly privateKey: Secret;
  readonly source: 'acme' | 'local-ca' | 'import';
};

/**
 * Creates the certificate if it does not exist: from the private CA, for these domains, with a key that renewals keep
 * so that clients can pin it. Returns whether it was created. Throws OperatorError if `domains` is empty, or if the
 * client holds the private key.
 */
export async function ensureOwnCertificate(
  vault: SecretsContext & QueueContext & ZoneContext,
  name: CertName,
  domains: readonly Identifier[],
): Promise<boolean> {
  const existing = await findCertificate(vault.db.reader, name);
  if (existing !== undefined && existing.csr !== null) {
    throw new OperatorError(`cannot serve HTTPS with "${name}": the client holds its private key`, {
      hint: `Set another certificate with --tls-certificate, or let the vault generate its key:\n  vault certificate update --name ${name} --csr none`,
    });
  }
  if (existing !== undefined) return false;
  if (domains.length === 0) {
    throw new OperatorError(
      `cannot create the HTTPS certificate "${name}": the vault does not know its own host name`,
      {
        hint: 'Set the URL that clients use, such as --public-url https://vault.example.com, or listen on a single address.',
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
    // Another process created it first.
    if (error instanceof Problem && error.code === 'certificate_exists') return false;
    throw error;
  }
}

/**
 * The current version of the certificate; undefined if nothing was issued yet, the client holds its key, or the
 * certificate was deleted.
 */
export async function currentOwnCertificate(
  vault: DatabaseContext & KeyringContext,
  name: CertName,
): Promise<OwnCertificate | undefined> {
  const { reader } = vault.db;
  const certificate = await findCertificate(reader, name);
  if (certificate === undefined || certificate.current_version === null) return undefined;
  const row = await findVersion(reader, certificate.id, certificate.current_version);
  if (row === undefined || !holdsKey(row)) return undefined;
  const { version, certificate_pem, chain_pem, source } = row;
  return { version, fullchain: certificate_pem + chain_pem, privateKey: openVersionKey(vault, row), source };
}

/**
 * A temporary certificate from the private CA, with its own key, for the names of a certificate that is not available
 * yet. It keeps the vault reachable over HTTPS while a public CA issues or an administrator fixes a problem. It is not
 * stored.
 */
export async function temporaryCertificate(
  vault: SecretsContext,
  name: CertName,
  domains: readonly Identifier[],
): Promise<OwnCertificate> {
  const certificate = await findCertificate(vault.db.reader, name);
  const named = certificate === undefined ? [] : parseJson(certificate.domains);
  const privateKey = await generatePrivateKey(defaultKeyType);
  const { id } = await localCa(vault.db.reader);
  const permitted = await settingsOfCa(vault.db.reader, id);
  const above = await companyChain(vault.db.reader, id);
  const isPermitted = (one: Identifier) =>
    forbiddenName(permitted, { domains: [one] }) === undefined &&
    forbiddenBy(above, { domains: [one] })?.path !== 'domains';
  const identifiers = [...new Set([...domains, ...named])].filter(isPermitted);
  const { leaf, chain } = await issueFromLocalCa(vault, {
    identifiers,
    // A confined CA has a certificate too, though clients must be told to accept it.
    ...(identifiers.length === 0 && { subject: ['CN=Temporary certificate'] }),
    privateKey,
    lifetime: undefined,
    isTemporary: true,
  });
  return {
    version: undefined,
    fullchain: [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join(''),
    privateKey: new Secret(Buffer.from(encodePem('PRIVATE KEY', privateKey.expose()))),
    source: 'local-ca',
  };
}
