/** Gives certificates their labels, and records which API keys may access a certificate because of them. */
import { parseJsonOr } from '../../base/json.ts';
import type { Writer } from '../../db/database.ts';
import { keysAllowedLabels } from '../../db/tables/access/api-key-pages.ts';
import { setCertificateLabels } from '../../db/tables/certificates/certificate-labels.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';

/** API keys that one event lists. */
const maxListed = 100;

/** The labels of a row, sorted. */
export function labelsOf({ labels }: Pick<CertificateRow, 'labels'>): string[] {
  return parseJsonOr(labels, []);
}

/** Replaces the labels of a certificate in the caller's transaction, and records it; the same ones change nothing. */
export async function changeLabels(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  certificate: CertificateRow,
  labels: readonly string[],
): Promise<void> {
  const before = labelsOf(certificate);
  if (before.join() === labels.join()) return;
  const added = labels.filter((label) => !before.includes(label));
  const detail = {
    ...(await storeLabels(writer, certificate, labels, added)),
    before: { labels: before },
  };
  const resource = `certificate:${certificate.name}`;
  record(writer, { actor, action: 'certificate.update', resource, detail }, world.now());
}

/**
 * Sets the labels of a certificate. Returns what an event of the same transaction must say: the labels, and the API
 * keys that get access by those which are `added`.
 */
export async function storeLabels(
  writer: Writer,
  certificate: Pick<CertificateRow, 'id' | 'name'>,
  labels: readonly string[],
  added: readonly string[] = labels,
): Promise<{ readonly labels: readonly string[]; readonly opened_to_api_keys?: readonly number[] }> {
  await setCertificateLabels(writer, certificate, labels);
  const keys = added.length === 0 ? [] : await keysAllowedLabels(writer, added, maxListed);
  return { labels, ...(keys.length > 0 && { opened_to_api_keys: keys }) };
}
