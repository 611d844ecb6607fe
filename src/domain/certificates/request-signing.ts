/**
 * Issues a certificate for a CSR that its client sends: at once from the private CA, through an order from an ACME CA.
 */
import { isSameRequest, readSigningRequest } from '../../crypto/x509/signing-request.ts';
import { findOpenRenewal } from '../../db/tables/renewals/renewals.ts';
import { anyProfile, type ProfileCheck, profileOf } from '../access/profile-confinement.ts';
import type { Actor } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';
import { type QueueContext, queueRenewal } from '../renewals/renewal-queue.ts';
import { type Renewal, refuseNotRenewable } from '../renewals/renewals.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { storeCertificateChange } from './certificate-update.ts';
import { refuseRevokedKey } from './client-keys.ts';

/**
 * Makes the CSR (PEM) that of the certificate, and queues a renewal with it. The same one again, while that renewal is
 * open, gets the same renewal; another one ends a running renewal. Throws `certificate_not_found`, `not_renewable`,
 * `invalid_request` if its names are not those of the certificate, `certificate_in_use` if the vault serves HTTPS with
 * the certificate, what `check` throws about its profile (`issuer/profile`), and what `count` throws, which is called
 * with the id of the certificate unless the same CSR is already open.
 */
export async function signRequest(
  vault: QueueContext & WorldContext,
  actor: Actor,
  name: string,
  csr: string,
  {
    check = anyProfile,
    count = () => undefined,
  }: {
    readonly check?: ProfileCheck;
    readonly count?: (certificateId: number) => void;
  } = {},
): Promise<Renewal> {
  const renewal = await vault.db.write(async (writer) => {
    const before = await requireCertificate(writer, name);
    check(await profileOf(writer, before));
    await refuseNotRenewable(writer, before);
    const isSame = isSameRequest(before.csr, csr);
    const isOpen = isSame && (await findOpenRenewal(writer, before.id)) !== undefined;
    if (isSame) {
      await refuseRevokedKey(writer, before, readSigningRequest(csr).publicKey);
    } else {
      await storeCertificateChange(vault, writer, actor, name, { csr });
    }
    // After the checks, so that a client learns from each of its attempts what is wrong with its CSR.
    if (!isOpen) count(before.id);
    return queueRenewal(vault, writer, actor, await requireCertificate(writer, name));
  });
  vault.renewalQueued.notify();
  return { ...renewal, certificate: name };
}
