/** What can be told: the events, which of them are alarms that end, and what a notice of one is. */

/** Alarms are open from their first notice until what is wrong has ended, and are told at growing distances meanwhile. */
export const alarmEvents = [
  'renewal.failed',
  'certificate.expiring',
  'api_key.expiring',
  'backup.overdue',
  'disk.low',
] as const;

export type AlarmEvent = (typeof alarmEvents)[number];

/** What a channel can be told. */
export const channelEvents = [...alarmEvents, 'certificate.issued'] as const;

type ChannelEvent = (typeof channelEvents)[number];

/** The ends of alarms, for whoever is told of the alarm. */
const recoveries = {
  'renewal.recovered': 'renewal.failed',
  'certificate.recovered': 'certificate.expiring',
  'backup.recovered': 'backup.overdue',
  'disk.recovered': 'disk.low',
} as const satisfies Record<string, AlarmEvent>;

export type NoticeEvent = ChannelEvent | keyof typeof recoveries | 'digest' | 'test';

/** Something that happened, before anybody is told. */
export type Notice = {
  readonly event: NoticeEvent;
  /** The name of what it is about, for lists. */
  readonly about: string | null;
  /** The certificates it is about, for the filters of channels: `["*"]` for any, null where it is about none. */
  readonly certificates: readonly string[] | null;
  readonly data: Readonly<Record<string, unknown>>;
};

/** The event that a channel must have chosen to be told of this one. */
export function chosenFor(event: NoticeEvent): string {
  return event in recoveries ? recoveries[event as keyof typeof recoveries] : event;
}

/** Whether one of the certificates fits one of the patterns, in which `*` stands for any characters. */
export function fitsFilter(patterns: readonly string[], certificates: readonly string[] | null): boolean {
  if (patterns.length === 0 || certificates === null || certificates.includes('*')) return true;
  return patterns.some((pattern) => certificates.some((name) => fits(pattern, name)));
}

/** Each part is taken at its first place after the one before: no pattern takes longer than its length times the name's. */
function fits(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === first;
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= end;
}
