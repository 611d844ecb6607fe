/** What chat and paging services show of a message, and how a text is cut to the limits of a service. */
import type { ChannelContext, Message } from './channel.ts';

export type Severity = 'critical' | 'error' | 'warning' | 'info';

export type ChatMessage = {
  readonly id: string;
  readonly event: string;
  /** RFC 3339. */
  readonly timestamp: string;
  readonly severity: Severity;
  /** Whether an alarm is over. */
  readonly isRecovery: boolean;
  /** `Critical`, `Recovered` … */
  readonly label: string;
  /** One line. */
  readonly title: string;
  /** What happened and what to do, without the signature. */
  readonly text: string;
  /** The name of the certificate, if the message concerns one. */
  readonly certificate: string | undefined;
  /** The page of the console, if the vault knows its public URL. */
  readonly link: string | undefined;
  /** The same for an alarm, its reminders and its recovery; undefined for a message that is no alarm. */
  readonly alarm: string | undefined;
};

type Data = Readonly<Record<string, unknown>>;

const urgencies: Readonly<Record<string, Severity>> = { emergency: 'critical', over: 'critical' };

const severities: Readonly<Record<string, (data: Data) => Severity>> = {
  'renewal.failed': () => 'error',
  'certificate.expiring': ({ urgency }) => urgencies[String(urgency)] ?? 'warning',
  'api_key.expiring': ({ urgency }) => (urgency === 'over' ? 'error' : 'warning'),
  'private_ca.expiring': ({ urgency }) => urgencies[String(urgency)] ?? 'warning',
  'backup.overdue': () => 'error',
  'disk.low': ({ state }) => (state === 'critical' ? 'critical' : 'warning'),
  'deployment.unhealthy': () => 'warning',
  'endpoint.unhealthy': () => 'warning',
};

const order: readonly Severity[] = ['info', 'warning', 'error', 'critical'];

/** The message for a chat or paging service. */
export function chatMessage(
  { id, type: event, timestamp, subject, text, data }: Message,
  { publicUrl, channelKey = 'vault' }: Pick<ChannelContext, 'publicUrl' | 'channelKey'>,
): ChatMessage {
  const isRecovery = event.endsWith('.recovered');
  const severity = event === 'gathered' ? worstIn(data) : severityOf(event, data);
  const certificate = typeof data.certificate === 'string' ? data.certificate : undefined;
  const subjectKey = isRecovery || event in severities ? alarmOf(event, data) : undefined;
  return {
    ...{ id, event, timestamp, severity, isRecovery, certificate, title: subject },
    label: isRecovery ? 'Recovered' : severity.charAt(0).toUpperCase() + severity.slice(1),
    text: text.split('\n-- \n')[0]?.trim() ?? '',
    link: publicUrl === undefined ? undefined : pageOf(publicUrl, event, certificate),
    alarm: subjectKey === undefined ? undefined : `${channelKey}/${subjectKey}`,
  };
}

function severityOf(event: string, data: Data): Severity {
  return severities[event]?.(data) ?? 'info';
}

function worstIn({ notices }: Data): Severity {
  const events = (notices as readonly { readonly type: string }[] | undefined) ?? [];
  const ranks = events.map(({ type }) => order.indexOf(severityOf(type, {})));
  return order[Math.max(0, ...ranks)] ?? 'info';
}

/** All alarms of a certificate are one: one recovery ends them. Deployments and endpoints have their own. */
function alarmOf(event: string, data: Data): string {
  const [deployment] = (data.deployments ?? []) as readonly { certificate: string; id: string }[];
  if (deployment !== undefined) return `deployment/${deployment.certificate}/${deployment.id}`;
  const [endpoint] = (data.endpoints ?? []) as readonly { id: number }[];
  if (endpoint !== undefined) return `endpoint/${endpoint.id}`;
  if (typeof data.certificate === 'string') return `certificate/${data.certificate}`;
  if (typeof data.private_ca === 'string') return `private-ca/${data.private_ca}`;
  const key = data.api_key as { readonly id?: number } | undefined;
  return key === undefined ? (event.split('.')[0] ?? event) : `api-key/${key.id}`;
}

function pageOf(publicUrl: string, event: string, certificate: string | undefined): string {
  const base = publicUrl.endsWith('/') ? publicUrl : `${publicUrl}/`;
  if (certificate !== undefined) return `${base}certificates/${encodeURIComponent(certificate)}`;
  if (event.startsWith('api_key.')) return `${base}api-keys`;
  if (event.startsWith('private_ca.')) return `${base}issuers`;
  if (event.startsWith('deployment.')) return `${base}fleet`;
  if (event.startsWith('endpoint.')) return `${base}fleet?tab=endpoints`;
  return event === 'test' ? `${base}notifications` : base;
}

export type Cut = {
  /** Encodes a character for the service; identity by default. */
  readonly encode?: (character: string) => string;
  /** How the service measures; UTF-16 units by default. */
  readonly size?: (text: string) => number;
};

/** The encoded text, cut with an ellipsis so that its size is at most `most`. */
export function cut(
  text: string,
  most: number,
  { encode = (character) => character, size = (encoded) => encoded.length }: Cut = {},
): string {
  let left = most - size('…');
  let short: string | undefined;
  let done = '';
  for (const character of text) {
    const next = encode(character);
    left -= size(next);
    // The ellipsis is needed only if the rest does not fit in its place.
    if (left < 0) short ??= done;
    if (left + size('…') < 0) return `${(short ?? done).trimEnd()}…`;
    done += next;
  }
  return done;
}

/** The size in bytes. */
export const byteSize = (text: string): number => Buffer.byteLength(text);

/** The text for a block between three backticks. */
export function codeText(text: string): string {
  return text.replaceAll('```', "'''");
}
