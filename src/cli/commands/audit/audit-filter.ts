/** The options by which commands choose audit events, the same as the console's. */
import { parseDuration } from '../../../base/duration.ts';
import { parseTimestamp } from '../../../base/timestamp.ts';
import type { AuditSearch } from '../../../domain/audit/audit-log.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';

export const auditFilterOptions = {
  since: { type: 'string', valueHint: 'TIME', description: 'events since then: 2030-01-31T00:00:00Z, or 7d' },
  until: { type: 'string', valueHint: 'TIME', description: 'events until then' },
  actor: { type: 'string', valueHint: 'ACTOR', description: 'only of this actor, such as admin:alice' },
  action: {
    type: 'string',
    valueHint: 'ACTION',
    description: 'only of this kind, such as certificate.download',
  },
  certificate: {
    type: 'string',
    valueHint: 'NAME',
    names: 'certificates',
    description: 'only about this certificate',
  },
  resource: {
    type: 'string',
    valueHint: 'RESOURCE',
    description: 'only about this, such as api-key:3',
  },
} as const;

/** What was asked for. Throws Misuse for times that are none. */
export function auditFilter(args: Arguments<typeof auditFilterOptions>, now: number): AuditSearch {
  if (args.certificate !== undefined && args.resource !== undefined) {
    throw new Misuse('--certificate and --resource name two things', 'Write one of them.');
  }
  return {
    actor: args.actor,
    action: args.action,
    resource: args.certificate === undefined ? args.resource : `certificate:${args.certificate}`,
    since: moment('--since', args.since, now),
    until: moment('--until', args.until, now),
  };
}

/** A time as RFC 3339 has it, or how long ago it was. */
function moment(option: string, text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ago = parseDuration(text);
  const at = ago === undefined ? parseTimestamp(text) : now - ago;
  if (at !== undefined) return at;
  throw new Misuse(
    `${option} ${text} is no time`,
    'Write 2030-01-31T00:00:00Z, or how long ago with m, h, d or y, such as 7d.',
  );
}
