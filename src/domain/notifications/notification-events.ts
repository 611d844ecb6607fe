/** Notification events, which of them are alarms, and the form of a notice. */

/** Alarms stay open until the problem is over, with reminders at growing intervals. */
export const alarmEvents = [
  'renewal.failed',
  'certificate.expiring',
  'api_key.expiring',
  'private_ca.expiring',
  'backup.overdue',
  'disk.low',
] as const;

export type AlarmEvent = (typeof alarmEvents)[number];

/** The events that a new channel subscribes to. */
export const usualEvents = [
  ...alarmEvents,
  'deployment.unhealthy',
  'endpoint.unhealthy',
  'scan.found',
  'pending_change.created',
] as const;

/** The events that a channel can subscribe to. */
export const channelEvents = [...usualEvents, 'certificate.issued'] as const;

type ChannelEvent = (typeof channelEvents)[number];

/** Recoveries, which go to the subscribers of the alarm. */
const recoveries = {
  'renewal.recovered': 'renewal.failed',
  'certificate.recovered': 'certificate.expiring',
  'private_ca.recovered': 'private_ca.expiring',
  'backup.recovered': 'backup.overdue',
  'disk.recovered': 'disk.low',
  'deployment.recovered': 'deployment.unhealthy',
  'endpoint.recovered': 'endpoint.unhealthy',
} as const satisfies Record<string, (typeof usualEvents)[number]>;

export type NoticeEvent = ChannelEvent | keyof typeof recoveries | 'digest' | 'test';

/** An event to notify of, before it is queued for channels. */
export type Notice = {
  readonly event: NoticeEvent;
  /** The name of what it is about: a certificate, API key, private CA, deployment or endpoint, or a pending change. */
  readonly about: string | null;
  /** The certificates that channel filters match: `["*"]` for any, null if the event concerns none. */
  readonly certificates: readonly string[] | null;
  /** The labels of certificates that the event concerns, too: those in the allowlist of an API key. */
  readonly labels?: readonly string[];
  readonly data: Readonly<Record<string, unknown>>;
};

/** The event that a channel subscribes to in order to receive this one. */
export function subscribedEvent(event: NoticeEvent): string {
  return event in recoveries ? recoveries[event as keyof typeof recoveries] : event;
}

/** Alarms of one subject, and the recoveries that end all of them. */
const courses: readonly (readonly [alarms: readonly string[], recoveries: readonly string[]])[] = [
  [
    ['renewal.failed', 'certificate.expiring'],
    ['renewal.recovered', 'certificate.recovered'],
  ],
  [['private_ca.expiring'], ['private_ca.recovered']],
  [['backup.overdue'], ['backup.recovered']],
  [['disk.low'], ['disk.recovered']],
  [['deployment.unhealthy'], ['deployment.recovered']],
  [['endpoint.unhealthy'], ['endpoint.recovered']],
];

/** The events that make an undelivered one obsolete: recoveries of an alarm, and alarms after a recovery. */
export function supersedingEvents(event: string): readonly string[] {
  const course = courses.find((parts) => parts.some((events) => events.includes(event)));
  return course?.find((events) => !events.includes(event)) ?? [];
}

/** Whether a certificate matches a pattern, in which `*` stands for any characters. No patterns match everything. */
export function matchesFilter(patterns: readonly string[], certificates: readonly string[] | null): boolean {
  if (patterns.length === 0 || certificates === null || certificates.includes('*')) return true;
  return patterns.some((pattern) => certificates.some((name) => matches(pattern, name)));
}

/** Matches each part where it first occurs, so the cost is at most pattern length times name length. */
function matches(pattern: string, name: string): boolean {
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
