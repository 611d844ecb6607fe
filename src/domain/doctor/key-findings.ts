/**
 * Findings about public keys that clients may pin: scheduled rotations, and an own certificate that changes its key.
 */
import { formatTimestamp } from '../../base/timestamp.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { findCertificate } from '../../db/tables/certificates/certificates.ts';
import { listNextKeys } from '../../db/tables/certificates/next-keys.ts';
import type { DatabaseContext } from '../contexts.ts';
import { keyPins } from '../versions/next-key.ts';
import type { Finding } from './finding.ts';

const check = 'key-rotation';

const maxShown = 10;

/** One finding per scheduled key rotation; `own` is the certificate that the vault serves HTTPS with. */
export async function keyFindings({ db }: DatabaseContext, own: string | undefined): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { name, pin, next_renewal_at: at } of await listNextKeys(db.reader, maxShown)) {
    const certificate = await findCertificate(db.reader, name);
    const current = certificate && (await keyPins(db.reader, certificate)).current;
    const when = at === null ? '' : ` on ${formatTimestamp(at - (at % 1000))}`;
    findings.push({
      check,
      status: 'warning',
      about: name,
      message: `${name} gets a new key at its next renewal${when}`,
      hint:
        'Clients that pin its key need both pins before:\n' +
        `Current pin: ${current ?? 'none yet'}\n` +
        `Next pin: ${pin}\n` +
        `To cancel: vault certificate update --name ${name} --no-rotate-key`,
    });
  }
  if (own !== undefined && (await changesItsKey(db.reader, own))) {
    findings.push({
      check,
      status: 'warning',
      about: own,
      message: `${own}, which the vault serves HTTPS with, gets a new key at each renewal`,
      hint: `Clients that pin its key lose access then.\nFix: vault certificate update --name ${own} --reuse-key`,
    });
  }
  return findings;
}

/**
 * Whether a certificate of the private CA, which clients pin because they do not know the CA, changes its key
 * unannounced.
 */
async function changesItsKey(reader: DatabaseContext['db']['reader'], name: string): Promise<boolean> {
  const row = await findCertificate(reader, name);
  if (row === undefined || row.reuse_key === 1 || row.current_version === null) return false;
  if (row.issuer_id === null || (await keyPins(reader, row)).next !== null) return false;
  return (await findVersion(reader, row.id, row.current_version))?.source === 'local-ca';
}
