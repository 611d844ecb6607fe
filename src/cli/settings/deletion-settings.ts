/** The setting of deleted certificates: how long they can be restored. */
import { day, parseDuration } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { usualKeepDays } from '../../domain/certificates/deleted-certificates.ts';
import type { Found } from './setting-values.ts';

export const deletionOptions = {
  'keep-deleted': {
    type: 'string',
    valueHint: 'DURATION',
    description: `how long a deleted certificate can be restored (default: ${usualKeepDays}d)`,
  },
} as const;

/** Milliseconds. Throws OperatorError that names the invalid setting. */
export function keepDeleted(setting: (name: keyof typeof deletionOptions) => Found | undefined): number {
  const found = setting('keep-deleted');
  if (found === undefined) return usualKeepDays * day;
  const ms = parseDuration(found.value);
  if (ms !== undefined && ms >= day && ms <= 3650 * day) return ms;
  throw new OperatorError(`${found.from}: "${found.value}" is not a valid duration`, {
    hint: 'Use a number with d or y, from 1d to 10y, such as 30d. To destroy one immediately: vault certificate purge',
  });
}
