/** Sources of the HTTPS certificate, and how changes are detected. */
import type { CertName } from '../../base/cert-name.ts';
import { hour } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import {
  currentOwnCertificate,
  ensureOwnCertificate,
  type OwnCertificate,
  temporaryCertificate,
} from '../../domain/certificates/own-certificate.ts';
import type { SecretsContext } from '../../domain/contexts.ts';
import type { ZoneContext } from '../../domain/dns-providers/wildcard-zones.ts';
import type { QueueContext } from '../../domain/renewals/renewal-queue.ts';
import { type TlsIdentity, tlsIdentity } from './tls-identity.ts';

export type TlsSource = {
  readonly kind: 'certificate' | 'files';
  /** The name of the vault's own certificate; null if it comes from files. */
  readonly certificate: CertName | null;
  /** The initial identity. Throws OperatorError or Problem if there is none. */
  readonly begin: () => Promise<TlsIdentity>;
  /**
   * The new identity, or undefined if nothing has changed since the last call. Throws if the change is unusable; the
   * same problem is reported once.
   */
  readonly look: () => Promise<TlsIdentity | undefined>;
};

/** A temporary certificate is replaced when this much of its lifetime is left, because it may be needed for long. */
const renewTemporaryBefore = 24 * hour;

/**
 * The certificate with this name, whichever process renews it. If it does not exist, the private CA issues it for the
 * domains; while it has no usable version, the private CA issues a temporary one.
 */
export function ownCertificateSource(
  vault: SecretsContext & QueueContext & ZoneContext,
  name: CertName,
  domains: readonly Identifier[],
  publicRoots?: readonly string[],
): TlsSource {
  const { world, log, db } = vault;
  let generation = -1;
  let served: { readonly version: number | undefined; readonly leaf: string; readonly notAfter: number };
  const adopt = ({ version, source, fullchain, privateKey }: OwnCertificate): TlsIdentity => {
    const origin = { certificate: name, ...(version === undefined ? { stand_in: true } : { version }) };
    const material = { fullchain, privateKey, isPrivate: source === 'local-ca', origin };
    const identity = tlsIdentity(material, world.now(), publicRoots);
    served = { version, leaf: identity.leaf.fingerprint256, notAfter: identity.notAfter };
    return identity;
  };
  const temporaryIdentity = async () => adopt(await temporaryCertificate(vault, name, domains));
  return {
    kind: 'certificate',
    certificate: name,
    begin: async () => {
      if (await ensureOwnCertificate(vault, name, domains)) {
        log.info({ certificate: name, domains }, 'private CA issued the HTTPS certificate');
      }
      generation = await db.generation();
      try {
        const current = await currentOwnCertificate(vault, name);
        if (current !== undefined) return adopt(current);
        log.warn(
          { certificate: name },
          'certificate not issued yet; serving a temporary one from the private CA',
        );
      } catch (error) {
        // Administrators need access to fix the problem.
        log.error(
          { err: error, certificate: name },
          'certificate unavailable; serving a temporary one from the private CA',
        );
      }
      return temporaryIdentity();
    },
    look: async () => {
      const seen = await db.generation();
      const isStandInOld =
        served.version === undefined && served.notAfter - world.now() < renewTemporaryBefore;
      if (seen === generation && !isStandInOld) return undefined;
      const current = await currentOwnCertificate(vault, name);
      generation = seen;
      if (current === undefined) return isStandInOld ? temporaryIdentity() : undefined;
      const before = served;
      const identity = adopt(current);
      return identity.leaf.fingerprint256 === before.leaf && current.version === before.version
        ? undefined
        : identity;
    },
  };
}
