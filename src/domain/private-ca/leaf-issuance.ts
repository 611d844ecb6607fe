/** Issues certificates from a private CA. */
import { createPublicKey } from 'node:crypto';
import { day } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { keyTypeOf, publicKeyOf } from '../../crypto/key-pair.ts';
import { issueLeaf } from '../../crypto/x509/leaf-certificate.ts';
import { type CaCertificateRow, extendIssuedUntil } from '../../db/tables/issuance/ca-certificates.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext, SecretsContext } from '../contexts.ts';
import { intermediateUntil, serialSize, validity } from './authorities.ts';
import { inheritedChain, upperChain } from './ca-chains.ts';
import { settingsOfCa } from './ca-settings.ts';
import { crlUrl } from './crl-address.ts';
import { refuseForbiddenBy } from './inherited-constraints.ts';
import type { LeafSettings } from './leaf-settings.ts';
import { refuseForbidden } from './permitted-names.ts';
import { inProfile } from './profile-rules.ts';
import { requireProfile } from './profile-settings.ts';
import { signingAuthority } from './signing-authorities.ts';

export type IssuedCertificate = { readonly leaf: Buffer; readonly chain: Buffer[] };

/** What a certificate of a private CA is to have. */
export type CertificateWish = LeafSettings & {
  readonly identifiers: readonly Identifier[];
  readonly lifetime: number | undefined;
  /** The name of a profile of the CA. */
  readonly profile?: string | undefined;
  /** Dates in place of those that the lifetime gives, in UTC milliseconds; a profile checks only the lifetime. */
  readonly notBefore?: number | undefined;
  readonly notAfter?: number | undefined;
  /** Whether only this process uses it, which makes another one after its next start. */
  readonly isTemporary?: boolean;
} & CertifiedKey;

/**
 * The key of a certificate: a private one (PKCS#8 DER), or the public one (SPKI DER) of a client that holds its own.
 */
type CertifiedKey = { readonly privateKey: Secret } | { readonly publicKey: Buffer };

/**
 * Issues a certificate for the key; returns leaf and chain as DER, the intermediate first. `lifetime` is in
 * milliseconds, by default that of the CA; the certificate expires no later than the root. Throws `invalid_request` for
 * names that the CA does not permit, and for what its profile does not permit.
 */
export async function issueFromPrivateCa(
  vault: SecretsContext,
  { id: issuerId, name }: Pick<IssuerRow, 'id' | 'name'>,
  { identifiers, ...request }: CertificateWish,
): Promise<IssuedCertificate> {
  const now = vault.world.now();
  const settings = await settingsOfCa(vault.db.reader, issuerId);
  const publicKey = 'publicKey' in request ? request.publicKey : publicKeyOf(request.privateKey);
  const { usage, uris, emails, subject, lifetime } =
    request.profile === undefined
      ? { ...request, lifetime: request.lifetime ?? settings.lifetime }
      : inProfile(
          await requireProfile(vault.db.reader, { id: issuerId, name }, request.profile),
          { ...request, domains: identifiers, key_type: typeOf(publicKey) },
          settings.lifetime,
        );
  const names = { domains: identifiers, usage, uris, emails, subject };
  refuseForbidden(name, settings, names);
  const usual = validity(now, lifetime);
  const { notBefore = usual.not_before } = request;
  const shift = notBefore - usual.not_before;
  const asked = { not_before: notBefore, not_after: request.notAfter ?? usual.not_after + shift };
  const { root, intermediate } = await intermediateUntil(vault, issuerId, settings, asked.not_after);
  // A temporary certificate keeps the vault reachable, even where the company's CA permits none of its names.
  if (request.isTemporary !== true) refuseForbiddenBy(name, inheritedChain({ root, intermediate }), names);
  const notAfter = Math.min(asked.not_after, intermediate.not_after);
  if (notAfter <= now) {
    throw new OperatorError('the private CA has expired', {
      hint: 'Add another private CA, and install its root on clients.\nTry: vault issuer add --type local-ca --name NAME',
    });
  }
  if (request.isTemporary !== true) await recordIssuance(vault, intermediate, notAfter);
  const leaf = await issueLeaf({
    ...{ identifiers, usage, uris, emails, subject },
    publicKey,
    serial: vault.world.randomBytes(serialSize),
    notBefore: asked.not_before,
    notAfter,
    issuer: signingAuthority(vault, intermediate),
    crlUrl: await crlUrl(vault, intermediate.id),
  });
  return { leaf, chain: [intermediate.certificate, ...upperChain({ root, intermediate }, now)] };
}

/** Recorded ahead for the rest of the day, so that most certificates need no transaction for it. */
async function recordIssuance(
  { db }: DatabaseContext,
  { id, issued_until }: CaCertificateRow,
  until: number,
) {
  if (issued_until >= until) return;
  await db.write((writer) => extendIssuedUntil(writer, id, Math.ceil(until / day) * day));
}

/** The type of a public key (SPKI DER). */
function typeOf(publicKey: Buffer): string {
  return keyTypeOf(createPublicKey({ key: publicKey, format: 'der', type: 'spki' }));
}
