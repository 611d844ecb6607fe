/** Templates for the body of a webhook: `{{placeholders}}` that are replaced with encoded values, and no logic. */
import type { ChatMessage } from './chat-message.ts';

/** The largest template, in characters. */
export const largestTemplate = 16_384;

/** Longer values are cut, so that a body stays small. */
const largestValue = 8192;

const values: Readonly<Record<string, (message: ChatMessage) => string>> = {
  id: ({ id }) => id,
  event: ({ event }) => event,
  timestamp: ({ timestamp }) => timestamp,
  severity: ({ severity }) => severity,
  status: ({ isRecovery }) => (isRecovery ? 'resolved' : 'firing'),
  alarm: ({ alarm, id }) => alarm ?? id,
  subject: ({ title }) => title,
  message: ({ text }) => text,
  certificate: ({ certificate }) => certificate ?? '',
  link: ({ link }) => link ?? '',
};

/** All placeholders. */
export const placeholders: readonly string[] = Object.keys(values);

/** `{{`, a word, `}}`, with spaces inside. */
const placeholder = /\{\{ {0,4}([a-z_]{1,32}) {0,4}\}\}/g;

/** The body of a message. */
export function renderedTemplate(template: string, contentType: string, message: ChatMessage): string {
  const encode = encoderOf(contentType);
  return template.replaceAll(placeholder, (_, name: string) =>
    encode((values[name]?.(message) ?? '').slice(0, largestValue).toWellFormed()),
  );
}

/** What is wrong with a template; undefined if nothing is. */
export function templateProblem(template: string, contentType: string): string | undefined {
  const unknown = [...template.matchAll(placeholder)].find(([, name = '']) => !Object.hasOwn(values, name));
  if (unknown !== undefined)
    return `has the unknown placeholder ${unknown[0]}; use ${placeholders.join(', ')}`;
  if (template.replaceAll(placeholder, '').includes('{{')) {
    return 'has {{ that begins no placeholder; write placeholders as {{message}}';
  }
  if (!isJson(contentType)) return undefined;
  try {
    // A letter that ends no escape sequence, and is no value without quotes.
    JSON.parse(template.replaceAll(placeholder, 'z'));
    return undefined;
  } catch {
    return 'is not JSON; put placeholders inside quotes, or set content_type';
  }
}

function isJson(contentType: string): boolean {
  return /^application\/(?:[a-z0-9.-]{1,60}\+)?json(?:;|$)/.test(contentType);
}

function encoderOf(contentType: string): (value: string) => string {
  if (isJson(contentType)) return (value) => JSON.stringify(value).slice(1, -1);
  if (contentType.startsWith('application/x-www-form-urlencoded')) return encodeURIComponent;
  if (/^(?:text|application)\/(?:[a-z0-9.-]{1,60}\+)?(?:xml|html)(?:;|$)/.test(contentType)) return xmlText;
  return (value) => value;
}

const entities: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' },
};

function xmlText(value: string): string {
  return value.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character);
}
