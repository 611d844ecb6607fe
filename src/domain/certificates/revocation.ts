/**
 * Revokes a version. At an ACME CA (RFC 8555 §7.6): with the account that ordered it, or with its own key if the
 * account is gone or the key is compromised. One of the private CA comes onto its CRL.
 */
import { X509Certificate } from 'node:crypto';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import { revokeCertificate } from '../../acme/revocation.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import {
  type CertificateVersionRow,
  setVersionRevoked,
} from '../../db/tables/certificates/certificate-versions.ts';
import { updateCertificate } from '../../db/tables/certificates/certificates.ts';
import { findAcmeAccount } from '../../db/tables/issuance/acme-accounts.ts';
import { findCaOfDirectory } from '../../db/tables/issuance/issuers.ts';
import { anyProfile, type ProfileCheck, profileOf } from '../access/profile-confinement.ts';
import { ownAccount, settleRollover, unusableStatus } from '../acme-accounts/acme-account.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import type { CaContext } from '../issuance-contexts.ts';
import { privateIssuer, putOnCrl } from '../private-ca/revoked-certificates.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { holdsKey, requireVersion, versionPrivateKey } from '../versions/versions.ts';

/** The reasons of RFC 5280 §5.3.1 that subscribers may give. */
export const revocationReasons = {
  unspecified: 0,
  keyCompromise: 1,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
} as const;

export type RevocationReason = keyof typeof revocationReasons;

/**
 * Revokes a version at its CA, by default the current one, and marks it as revoked. If it is the current version of a
 * certificate that renews automatically, a renewal is queued. Returns the number of the version and the id of the
 * renewal. Throws what `check` throws about the profile of a certificate that is renewed, `certificate_not_found`,
 * `version_not_found`, `no_current_version`, `not_renewable` if neither an ACME CA nor the private CA issued the
 * version, OperatorError if it is revoked already or has expired, and AcmeError with the error of the CA.
 */
export async function revokeVersion(
  vault: SecretsContext & QueueContext & CaContext,
  actor: Actor,
  name: string,
  { version: number, reason }: { readonly version: number | undefined; readonly reason: RevocationReason },
  signal: AbortSignal,
  check: ProfileCheck = anyProfile,
): Promise<{ version: number; renewal: number | undefined }> {
  const certificate = await requireCertificate(vault.db.reader, name, { suggest: true });
  const version = await requireVersion(vault.db.reader, certificate, number);
  const authority = version.directory_url === null ? await privateIssuer(vault, version) : undefined;
  if (version.directory_url === null && authority === undefined) {
    throw new Problem('not_renewable', {
      detail: `Version ${version.version} was issued by another CA; revoke it at the CA that issued it.`,
    });
  }
  refuseRevoked(name, version);
  const isRenewed =
    certificate.current_version === version.version &&
    certificate.issuer_id !== null &&
    certificate.disabled_at === null &&
    certificate.auto_renew === 1;
  if (isRenewed) check(await profileOf(vault.db.reader, certificate));
  if (version.directory_url !== null) {
    const ca = await findCaOfDirectory(vault.db.reader, version.directory_url);
    const client = vault.acme.at({ directory_url: version.directory_url, ca_pem: ca?.ca_pem ?? null });
    await revokeAt(client, vault, version, revocationReasons[reason], signal);
  } else if (version.not_after <= vault.world.now()) {
    throw new OperatorError(
      `version ${version.version} of ${name} expired at ${formatTimestamp(version.not_after)}; there is nothing to revoke`,
    );
  }
  const renewal = await vault.db.write(async (writer) => {
    const now = vault.world.now();
    if (authority !== undefined) {
      // Another process may have revoked it meanwhile, or deleted the certificate.
      refuseRevoked(
        name,
        await requireVersion(writer, await requireCertificate(writer, name), version.version),
      );
      await putOnCrl(writer, authority, version, { reason: revocationReasons[reason], at: now });
    }
    await setVersionRevoked(writer, version.id, now);
    const detail = { version: version.version, reason };
    const resource = `certificate:${name}`;
    record(writer, { actor, action: 'certificate.revoke', resource, detail }, now);
    if (!isRenewed) return undefined;
    // A revoked certificate is as useless as none, so failures are retried soon. Its key is not reused.
    await updateCertificate(writer, certificate.id, { changed_at: now, next_renewal_at: now });
    return (await queueRenewal(vault, writer, actor, certificate)).id;
  });
  if (renewal !== undefined) vault.renewalQueued.notify();
  return { version: version.version, renewal };
}

function refuseRevoked(name: string, { version, revoked_at: at }: CertificateVersionRow): void {
  if (at === null) return;
  throw new OperatorError(`version ${version} of ${name} was already revoked at ${formatTimestamp(at)}`);
}

async function revokeAt(
  client: AcmeClient,
  vault: SecretsContext,
  version: CertificateVersionRow,
  reason: number,
  signal: AbortSignal,
): Promise<void> {
  const leaf = new X509Certificate(version.certificate_pem).raw;
  const byOwnKey = () => {
    if (!holdsKey(version)) throw keyWithClient(version);
    return revokeCertificate(client, { privateKey: versionPrivateKey(vault, version) }, leaf, reason, signal);
  };
  const row =
    version.acme_account_id === null
      ? undefined
      : await findAcmeAccount(vault.db.reader, version.acme_account_id);
  if (row?.status !== 'valid') return byOwnKey();
  if (reason === revocationReasons.keyCompromise && holdsKey(version)) {
    try {
      // If the key itself signs the request, the CA blocks it for all certificates; the account revokes only this one.
      return await byOwnKey();
    } catch (error) {
      if (
        !(error instanceof AcmeError) ||
        !['unauthorized', 'malformed', 'badPublicKey'].includes(error.type)
      )
        throw error;
    }
  }
  const account = ownAccount(vault, await settleRollover(vault, client, row, signal));
  try {
    await revokeCertificate(client, { account }, leaf, reason, signal);
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    if ((await unusableStatus(client, account, error, signal)) === undefined) throw error;
    await byOwnKey();
  }
}

function keyWithClient({ version }: CertificateVersionRow): OperatorError {
  return new OperatorError(
    `version ${version} cannot be revoked here: the account that ordered it is gone, and the client holds its private key`,
    { hint: 'Revoke it on the client with its key, as with "certbot revoke --cert-path … --key-path …".' },
  );
}
