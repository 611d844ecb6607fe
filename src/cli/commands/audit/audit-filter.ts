/** The options that filter audit events, the same as in the console. */
import { momentForms, parseMoment } from '../../../base/moment.ts';
import type { AuditSearch } from '../../../domain/audit/audit-log.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { Misuse } from '../../terminal/misuse.ts';

export const auditFilterOptions = {
  since: {
    type: 'string',
    valueHint: 'TIME',
    description:
      'events since this time: 7d for 7 days ago, 2030-01-31 for the start of that day in UTC, or 2030-01-31T00:00:00Z',
  },
  until: { type: 'string', valueHint: 'TIME', description: 'events until this time, written like --since' },
  actor: {
    type: 'string',
    valueHint: 'ACTOR',
    description: 'only events by this actor, such as admin:alice',
  },
  action: {
    type: 'string',
    valueHint: 'ACTION',
    description: 'only events with this action, such as certificate.download',
  },
  certificate: {
    type: 'string',
    valueHint: 'NAME',
    names: 'certificates',
    description: 'only events about this certificate',
  },
  resource: {
    type: 'string',
    valueHint: 'RESOURCE',
    description: 'only events about this resource, such as api-key:3',
  },
} as const;

/** The filter from the options. Throws Misuse for an invalid time. */
export function auditFilter(args: Arguments<typeof auditFilterOptions>, now: number): AuditSearch {
  if (args.certificate !== undefined && args.resource !== undefined) {
    throw new Misuse('--certificate and --resource exclude each other', 'Use one of them.');
  }
  return {
    actor: args.actor,
    action: args.action,
    resource: args.certificate === undefined ? args.resource : `certificate:${args.certificate}`,
    since: moment('--since', args.since, now),
    until: moment('--until', args.until, now),
  };
}

/** The moment of an option that looks back. Throws Misuse. */
function moment(option: string, text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const at = parseMoment(text, now, 'ago');
  if (at !== undefined) return at;
  throw new Misuse(`${option}: "${text}" is not a time`, `Use ${momentForms}.`);
}
