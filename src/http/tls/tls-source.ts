/** Where the certificate for HTTPS comes from, and how it is noticed that there is another one. */
import type { CertName } from '../../base/cert-name.ts';
import { hour } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import {
  currentOwnCertificate,
  ensureOwnCertificate,
  type OwnCertificate,
  temporaryCertificate,
} from '../../domain/certificates/own-certificate.ts';
import type { LogContext, SecretsContext } from '../../domain/contexts.ts';
import type { QueueContext } from '../../domain/renewals/renewal-queue.ts';
import { type TlsIdentity, tlsIdentity } from './tls-identity.ts';

export type TlsSource = {
  readonly kind: 'certificate' | 'files';
  /** The name of the vault's own certificate; null where it comes from files. */
  readonly certificate: CertName | null;
  /** What to begin with. Throws OperatorError or Problem where there is nothing to begin with. */
  readonly begin: () => Promise<TlsIdentity>;
  /**
   * What to change to, undefined where nothing has changed since the last call. Throws where what has changed cannot be
   * used; the same trouble is told once.
   */
  readonly look: () => Promise<TlsIdentity | undefined>;
};

/** A stand-in is replaced when this much of its life is left: it may have to stand in for long. */
const standInRest = 24 * hour;

/**
 * The certificate of this name, whatever process makes its versions. Where it does not exist the private CA makes it for
 * the domains; while it has no version that can be served, the private CA makes one that stands in.
 */
export function ownCertificateSource(
  vault: SecretsContext & LogContext & QueueContext,
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
  const standIn = async () => adopt(await temporaryCertificate(vault, name, domains));
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
        // Whoever is to mend it has to reach the vault.
        log.error(
          { err: error, certificate: name },
          'certificate unavailable; serving a temporary one from the private CA',
        );
      }
      return standIn();
    },
    look: async () => {
      const seen = await db.generation();
      const isStandInOld = served.version === undefined && served.notAfter - world.now() < standInRest;
      if (seen === generation && !isStandInOld) return undefined;
      const current = await currentOwnCertificate(vault, name);
      generation = seen;
      if (current === undefined) return isStandInOld ? standIn() : undefined;
      const before = served;
      const identity = adopt(current);
      return identity.leaf.fingerprint256 === before.leaf && current.version === before.version
        ? undefined
        : identity;
    },
  };
}
