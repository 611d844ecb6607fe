/** What API keys have labels for: their own, those of certificates that they may access, and those of their reach. */
import type { Writer } from '../../db/database.ts';
import type { ApiKeyRow, LabelColumn } from '../../db/tables/access/api-keys.ts';
import { labelsText } from '../../db/tables/certificates/certificate-labels.ts';
import { indexLabels } from '../../db/tables/object-labels.ts';
import type { CreateApiKeyInput } from '../inputs.ts';

/** The settings of a key that are labels. */
export type KeyLabels = Pick<CreateApiKeyInput, LabelColumn>;

/** The columns of these settings. */
export function labelColumns({ labels, certificate_labels, reach }: KeyLabels): Pick<ApiKeyRow, LabelColumn> {
  return {
    labels: labelsText(labels),
    certificate_labels: labelsText(certificate_labels),
    reach: labelsText(reach),
  };
}

/** Lets the key be found by its labels, and by those of its allowlist. */
export async function indexKey(
  writer: Writer,
  id: number,
  { labels, certificate_labels }: KeyLabels,
): Promise<void> {
  await indexLabels(writer, 'api-key', id, labels);
  await indexLabels(writer, 'allowlist', id, certificate_labels);
}

/** Without the settings that have no labels, as most keys do not. */
export function namedLabels({ labels, certificate_labels, reach }: KeyLabels): Partial<KeyLabels> {
  const all = { certificate_labels, reach, labels };
  return Object.fromEntries(Object.entries(all).filter(([, list]) => list.length > 0));
}
