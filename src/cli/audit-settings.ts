/** The settings about the audit log: how long it is kept. */
import { day, parseDuration } from '../base/duration.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { Found } from './setting-values.ts';

export const auditOptions = {
  'audit-retention': {
    type: 'string',
    valueHint: 'DURATION',
    description: 'how long audit events are kept (default: forever)',
  },
} as const;

export type AuditSettings = {
  /** Milliseconds, or undefined for ever. */
  readonly keepFor: number | undefined;
};

/** Throws OperatorError that names the setting that is wrong. */
export function auditSettings(
  setting: (name: keyof typeof auditOptions) => Found | undefined,
): AuditSettings {
  return { keepFor: retention(setting('audit-retention')) };
}

function retention(setting: Found | undefined): number | undefined {
  if (setting === undefined || setting.value === 'forever') return undefined;
  const ms = parseDuration(setting.value);
  if (ms !== undefined && ms >= day) return ms;
  throw new OperatorError(`${setting.from}: "${setting.value}" is not how long audit events can be kept`, {
    hint: 'Write forever, or a number and d or y, from 1d, such as 400d or 7y.',
  });
}
