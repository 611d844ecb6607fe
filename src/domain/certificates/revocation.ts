/**
 * Revoking a version (RFC 8555 §7.6): by the account that ordered it, or by its own key where the account is gone or the
 * key is compromised.
 */
import { X509Certificate } from 'node:crypto';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import { revokeCertificate } from '../../acme/revocation.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { findAcmeAccount } from '../../db/tables/acme-accounts.ts';
import { type CertificateVersionRow, setVersionRevoked } from '../../db/tables/certificate-versions.ts';
import { updateCertificate } from '../../db/tables/certificates.ts';
import { findCaOfDirectory } from '../../db/tables/issuers.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { lossOf, ownAccount, settleRollover } from '../issuance/acme-account.ts';
import type { CaContext } from '../issuance/issuance-contexts.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { requireVersion, versionPrivateKey } from '../versions/versions.ts';

/** Reasons by their names in RFC 5280 §5.3.1, as far as subscribers may give them. */
export const revocationReasons = {
  unspecified: 0,
  keyCompromise: 1,
  affiliationChanged: 3,
  superseded: 4,
  cessationOfOperation: 5,
} as const;

export type RevocationReason = keyof typeof revocationReasons;

/**
 * Asks the CA to revoke a version, the current one where none is named, and marks it. When that is the current version
 * of a certificate that is renewed, a renewal is queued at once. Returns the version's number and the renewal's id.
 * Throws `certificate_not_found`, `version_not_found`, `no_current_version`, `not_renewable` for what no ACME CA issued,
 * and AcmeError with the CA's words.
 */
export async function revokeVersion(
  vault: SecretsContext & QueueContext & CaContext,
  actor: Actor,
  name: string,
  { version: number, reason }: { readonly version: number | undefined; readonly reason: RevocationReason },
  signal: AbortSignal,
): Promise<{ version: number; renewal: number | undefined }> {
  const certificate = await requireCertificate(vault.db.reader, name, { suggest: true });
  const version = await requireVersion(vault.db.reader, certificate, number);
  if (version.directory_url === null) {
    throw new Problem('not_renewable', {
      detail: `Version ${version.version} was not issued by an ACME CA; its own CA has to revoke it.`,
    });
  }
  if (version.revoked_at !== null) {
    throw new OperatorError(
      `version ${version.version} of ${name} was revoked at ${formatTimestamp(version.revoked_at)} already`,
    );
  }
  const ca = await findCaOfDirectory(vault.db.reader, version.directory_url);
  const client = vault.acme.at({ directory_url: version.directory_url, ca_pem: ca?.ca_pem ?? null });
  await revokeAt(client, vault, version, revocationReasons[reason], signal);
  const renewal = await vault.db.write(async (writer) => {
    const now = vault.world.now();
    await setVersionRevoked(writer, version.id, now);
    const detail = { version: version.version, reason };
    const resource = `certificate:${name}`;
    await record(writer, { actor, action: 'certificate.revoke', resource, detail }, now);
    const isServed = certificate.current_version === version.version;
    if (!isServed || certificate.issuer_id === null || certificate.disabled_at !== null) return undefined;
    if (certificate.auto_renew === 0) return undefined;
    // A revoked certificate is as good as none: whatever fails now is tried again soon. Its key is not used again.
    await updateCertificate(writer, certificate.id, { changed_at: now, next_renewal_at: now });
    return (await queueRenewal(vault, writer, actor, certificate)).id;
  });
  if (renewal !== undefined) vault.renewalQueued.notify();
  return { version: version.version, renewal };
}

async function revokeAt(
  client: AcmeClient,
  vault: SecretsContext,
  version: CertificateVersionRow,
  reason: number,
  signal: AbortSignal,
): Promise<void> {
  const leaf = new X509Certificate(version.certificate_pem).raw;
  const byOwnKey = () =>
    revokeCertificate(client, { privateKey: versionPrivateKey(vault, version) }, leaf, reason, signal);
  const row =
    version.acme_account_id === null
      ? undefined
      : await findAcmeAccount(vault.db.reader, version.acme_account_id);
  if (row?.status !== 'valid') return byOwnKey();
  if (reason === revocationReasons.keyCompromise) {
    try {
      // A CA that sees the key itself sign blocks it for every certificate; for an account it revokes only this one.
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
    if ((await lossOf(client, account, error, signal)) === undefined) throw error;
    await byOwnKey();
  }
}
