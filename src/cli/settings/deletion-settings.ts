/** Settings of what is removed: how long deleted certificates can be restored, and how many versions are kept. */
import { day, parseDuration } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { defaultKeepDays } from '../../domain/certificates/deleted-certificates.ts';
import { defaultKeepVersions } from '../../domain/versions/version-pruning.ts';
import type { Found } from './setting-values.ts';

export const deletionOptions = {
  'keep-deleted': {
    type: 'string',
    valueHint: 'DURATION',
    description: `how long a deleted certificate can be restored (default: ${defaultKeepDays}d)`,
  },
  'keep-versions': {
    type: 'string',
    valueHint: 'N',
    description: `how many versions of a certificate to keep (default: ${defaultKeepVersions})`,
  },
} as const;

/** Milliseconds. Throws OperatorError that names the invalid setting. */
export function keepDeleted(setting: (name: keyof typeof deletionOptions) => Found | undefined): number {
  const found = setting('keep-deleted');
  if (found === undefined) return defaultKeepDays * day;
  const ms = parseDuration(found.value);
  if (ms !== undefined && ms >= day && ms <= 3650 * day) return ms;
  throw new OperatorError(`${found.from}: "${found.value}" is not a valid duration`, {
    hint: 'Use a number with d or y, from 1d to 10y, such as 30d. To destroy one immediately: vault certificate purge',
  });
}

const maxVersions = 1_000_000;

/** A number of versions, at least one. Throws OperatorError that names the invalid setting. */
export function keepVersions(setting: (name: keyof typeof deletionOptions) => Found | undefined): number {
  const found = setting('keep-versions');
  if (found === undefined) return defaultKeepVersions;
  const count = /^[1-9]\d{0,6}$/.test(found.value) ? Number(found.value) : 0;
  if (count >= 1 && count <= maxVersions) return count;
  throw new OperatorError(`${found.from}: "${found.value}" is not a valid number of versions`, {
    hint: `Use a whole number from 1 to ${maxVersions}. Versions that expired less than 30 days ago are always kept.`,
  });
}
