/** Expiry times in notifications, and the texts about private CAs that expire. */
import { day, hour } from '../../base/duration.ts';
import { type Data, fact, type Words } from './notification-set-aside.ts';

/** The text about a private CA whose root or intermediate must be replaced manually. */
export function privateCaWords(data: Data, at: number): Words {
  const { private_ca: name, role, advice, fix } = data;
  const what = data.urgency === 'over' ? 'has expired' : `expires ${timeUntil(data.expires_at, at)}`;
  return {
    subject: `private CA ${name}: ${role} ${what}`,
    lines: [
      `The ${role} of private CA ${name} ${what}.`,
      '',
      ...fact('Valid until', expiryText(data.expires_at, at)),
      '',
      ...String(advice).split(/(?<=[.:]) /),
      '',
      `  ${fix}`,
    ],
  };
}

/** The text about a private CA that was renewed after such a notification. */
export function privateCaRenewedWords(data: Data, at: number): Words {
  return {
    subject: `private CA ${data.private_ca}: renewed`,
    lines: [
      `Private CA ${data.private_ca} was renewed.`,
      `Its expiry was first notified at ${data.since}.`,
      '',
      ...fact('Valid until', expiryText(data.expires_at, at)),
    ],
  };
}

/** `2026-12-01T12:00:00Z (in 10 days)`; undefined if there is no time. */
export function expiryText(time: unknown, at: number): string | undefined {
  if (typeof time !== 'string') return undefined;
  return Date.parse(time) <= at ? `${time} (expired)` : `${time} (${timeUntil(time, at)})`;
}

/** `in 12 days` */
export function timeUntil(time: unknown, at: number): string {
  const left = Date.parse(String(time)) - at;
  const [count, unit] = left >= 2 * day ? [left / day, 'days'] : [left / hour, 'hours'];
  return count < 1 ? 'within the hour' : `in ${Math.floor(count)} ${Math.floor(count) === 1 ? 'hour' : unit}`;
}
