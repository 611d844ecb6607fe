/**
 * Which certificate an API key is bound to: one that a private CA of the vault issues, by its name, so that every
 * version of it serves and a renewal changes nothing.
 */
import type { CertName } from '../../base/cert-name.ts';
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import type { Binding } from '../../db/tables/access/api-keys.ts';
import { findCertificate } from '../../db/tables/certificates/certificates.ts';
import { findIssuerById } from '../../db/tables/issuance/issuers.ts';
import { suggestName } from '../versions/certificate-lookup.ts';

const unbound: Binding = { client_certificate_id: null, client_certificate: null };

/**
 * The binding to the certificate of this name, or to none. `held` is the one that the key has: it stays while its
 * certificate is the same or deleted, so that other settings of the key can be changed. Throws `invalid_request` for a
 * certificate that does not exist, that no private CA issues, or that is only for servers.
 */
export async function bindingTo(reader: Reader, name: CertName | null, held?: Binding): Promise<Binding> {
  if (name === null) return unbound;
  const certificate = await findCertificate(reader, name);
  const isHeld =
    held?.client_certificate === name &&
    (certificate === undefined || certificate.id === held.client_certificate_id);
  if (isHeld) return held;
  if (certificate === undefined) {
    throw refused(`unknown certificate "${name}"`, await suggestName(reader, name));
  }
  const { id, issuer_id: issuerId, usage } = certificate;
  const issuer = issuerId === null ? undefined : await findIssuerById(reader, issuerId);
  if (issuer === undefined || issuer.type === 'acme') {
    throw refused(
      `"${name}" is not issued by a private CA of the vault`,
      'Try: vault certificate create --name NAME --domain NAME --usage client',
    );
  }
  // Both usages are stored as none.
  if (usage !== null && usage !== 'client') {
    throw refused(
      `"${name}" is issued for servers only`,
      `Fix: vault certificate update --name ${name} --usage both`,
    );
  }
  return { client_certificate_id: id, client_certificate: name };
}

function refused(message: string, hint: string): Problem {
  return new Problem('invalid_request', {
    detail: `client_certificate: ${message}.`,
    errors: [{ path: 'client_certificate', message }],
    hint,
  });
}
