/**
 * What `certificate update` says about the public key pin: clients that pin a key need the next pin before it is used.
 */
import { formatTimestamp } from '../../../base/timestamp.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';
import { requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import { keyPins } from '../../../domain/versions/next-key.ts';
import { facts } from '../../terminal/output.ts';

type KeyChange = {
  readonly rotate_key?: boolean | undefined;
  readonly reuse_key?: boolean | undefined;
  readonly key_type?: string | undefined;
};

/**
 * The warning for a change that changes the pin, with both pins if they are known; otherwise nothing. `isQueued`: it
 * renews now.
 */
export async function keyNotice(
  { db }: DatabaseContext,
  name: string,
  { rotate_key, reuse_key, key_type }: KeyChange,
  isQueued: boolean,
): Promise<string> {
  const certificate = await requireCertificate(db.reader, name);
  if (rotate_key === true) {
    const { current, next } = await keyPins(db.reader, certificate);
    const at = certificate.auto_renew === 1 ? certificate.next_renewal_at : null;
    const when = at === null ? '' : `, on ${formatTimestamp(at - (at % 1000))}`;
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
  if (isQueued && key_type !== undefined && certificate.reuse_key === 1) {
    return 'Warning: the new key type changes the public key. Clients that pin it stop trusting the server then.\n';
  }
  if (reuse_key !== false) return '';
  return (
    'Warning: each renewal changes the public key. Clients that pin it stop trusting the server then.\n' +
    `  To announce the next key: vault certificate update --name ${name} --rotate-key\n`
  );
}
