/** Notifications about certificates that are issued or fail to renew, queued in the transaction of that change. */
import { parseJson } from '../../base/json.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import type { Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { findIssuerById } from '../../db/tables/issuance/issuers.ts';
import { findAlarm } from '../../db/tables/notifications/notification-alarms.ts';
import { listChannels } from '../../db/tables/notifications/notification-channels.ts';
import { together } from '../../db/together.ts';
import { closeAlarm, raiseAlarm } from './notification-alarms.ts';
import type { NoticeEvent } from './notification-events.ts';
import { isForSome, notify } from './notification-queue.ts';

/** The part of a certificate that these notifications need. */
export type NoticeCertificate = Pick<CertificateRow, 'id' | 'name' | 'domains' | 'issuer_id'>;

/** Notifies that this version was issued, and closes the alarms of the certificate. */
export async function notifyIssued(
  world: World,
  writer: Writer,
  certificate: NoticeCertificate,
  version: number,
): Promise<void> {
  const { name } = certificate;
  const [channels, alarms] = await together([listChannels(writer), openAlarms(writer, certificate)]);
  const notice = { event: 'certificate.issued', about: name, certificates: [name] } as const;
  if (isForSome(channels, notice)) {
    const facts = await factsOf(writer, certificate, version);
    await notify(world, writer, { ...notice, data: { ...facts, version } });
  }
  if (alarms.some((alarm) => alarm !== undefined)) {
    await notifyRecovered(world, writer, certificate, version);
  }
}

function openAlarms(writer: Writer, { id }: NoticeCertificate) {
  const subject = { certificateId: id };
  return together([
    findAlarm(writer, 'renewal.failed', subject),
    findAlarm(writer, 'certificate.expiring', subject),
  ]);
}

/** Closes the alarms of a certificate that has a new version, and notifies if any were open. */
export async function notifyRecovered(
  world: World,
  writer: Writer,
  certificate: NoticeCertificate,
  version: number,
): Promise<void> {
  const subject = { certificateId: certificate.id };
  const failing = await closeAlarm(writer, 'renewal.failed', subject);
  const expiring = await closeAlarm(writer, 'certificate.expiring', subject);
  const since = failing ?? expiring;
  if (since === undefined) return;
  const { name } = certificate;
  const event: NoticeEvent = failing === undefined ? 'certificate.recovered' : 'renewal.recovered';
  const facts = await factsOf(writer, certificate, version);
  const data = { ...facts, version, since: formatTimestamp(since.opened_at) };
  await notify(world, writer, { event, about: name, certificates: [name], data });
}

/** Notifies that a renewal failed, and reminds at growing intervals while renewals keep failing. */
export async function notifyFailed(
  world: World,
  writer: Writer,
  certificate: CertificateRow,
  reason: string,
): Promise<void> {
  const facts = await factsOf(writer, certificate, certificate.current_version ?? 0);
  const { name, failed_attempts, next_renewal_at } = certificate;
  await raiseAlarm(world, writer, {
    event: 'renewal.failed',
    subject: { certificateId: certificate.id },
    level: 1,
    notice: ({ at, timesNotified }) => ({
      event: 'renewal.failed',
      about: name,
      certificates: [name],
      data: {
        ...facts,
        error: reason,
        failed_attempts,
        since: formatTimestamp(at),
        next_attempt_at: formatTimestampOrNull(next_renewal_at),
        told_before: timesNotified,
      },
    }),
  });
}

async function factsOf(writer: Writer, { id, name, domains, issuer_id }: NoticeCertificate, version: number) {
  const row = await findVersion(writer, id, version);
  const issuer = issuer_id === null ? undefined : await findIssuerById(writer, issuer_id);
  return {
    certificate: name,
    domains: parseJson(domains),
    issuer: issuer?.name ?? null,
    expires_at: row === undefined ? null : formatTimestamp(row.not_after),
  };
}
