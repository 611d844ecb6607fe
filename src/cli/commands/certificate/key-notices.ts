/**
 * What `certificate update` says about the public key pin: clients that pin a key need the next pin before it is used.
 */
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { CertificateSettingsView } from '../../../domain/certificates/certificate-settings.ts';
import type { CertificateView } from '../../../domain/certificates/certificate-views.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { keyPins } from '../../../domain/versions/next-key.ts';
import type { RemoteVault } from '../../remote/remote-vault.ts';
import { facts } from '../../terminal/output.ts';
import { certificatePath } from './certificates-there.ts';

type KeyChange = {
  readonly rotate_key?: boolean | undefined;
  readonly reuse_key?: boolean | undefined;
  readonly key_type?: string | undefined;
};

/** What the warning says about the keys of a certificate. */
export type KeyFacts = {
  readonly name: string;
  readonly current: string | null;
  readonly next: string | null;
  /** When it is renewed automatically; null if it is not. */
  readonly renewedAt: string | null;
  readonly isReused: boolean;
};

export async function keyFacts({ db }: DatabaseContext, name: string): Promise<KeyFacts> {
  const certificate = await requireCertificate(db.reader, name);
  const at = certificate.auto_renew === 1 ? certificate.next_renewal_at : null;
  return {
    name,
    ...(await keyPins(db.reader, certificate)),
    renewedAt: at === null ? null : formatTimestamp(at - (at % 1000)),
    isReused: certificate.reuse_key === 1,
  };
}

/** The same of a certificate at a server. */
export async function keyFactsThere(remote: RemoteVault, name: string): Promise<KeyFacts> {
  const settings = await remote.get<CertificateSettingsView>(certificatePath(name, '/settings'));
  const { renewal } = await remote.get<CertificateView>(certificatePath(name));
  return {
    name,
    current: settings.public_key_pin,
    next: settings.next_public_key_pin,
    renewedAt: settings.auto_renew ? renewal.next_at : null,
    isReused: settings.reuse_key,
  };
}

/**
 * The warning for a change that changes the pin, with both pins if they are known; otherwise nothing. `isQueued`: it
 * renews now.
 */
export function keyNotice(
  { name, current, next, renewedAt, isReused }: KeyFacts,
  { rotate_key, reuse_key, key_type }: KeyChange,
  isQueued: boolean,
): string {
  if (rotate_key === true) {
    const when = renewedAt === null ? '' : `, on ${renewedAt}`;
    const pins = facts([
      ['Current pin', current ?? 'none yet'],
      ['Next pin', next ?? '-'],
    ]);
    return (
      `Warning: the next renewal${when}, changes the public key. Clients that pin it need both pins before:\n` +
      `${pins.replaceAll(/^/gm, '  ').trimEnd()}\n` +
      `  To rotate now: vault certificate renew --name ${name}\n`
    );
  }
  if (isQueued && key_type !== undefined && isReused) {
    return 'Warning: the new key type changes the public key. Clients that pin it stop trusting the server then.\n';
  }
  if (reuse_key !== false) return '';
  return (
    'Warning: each renewal changes the public key. Clients that pin it stop trusting the server then.\n' +
    `  To announce the next key: vault certificate update --name ${name} --rotate-key\n`
  );
}
