/**
 * Passwords and passphrases in files, as a person would type them. Some editors add a byte order mark, some
 * write UTF-16, most end the line.
 */
import { Secret } from '../../base/secret.ts';

/** The possible readings, the likeliest first. */
export type Readings = readonly [Secret<string>, ...Secret<string>[]];

/** The text without byte order mark and the end of its line; UTF-16 where the mark says so, otherwise UTF-8. */
export function secretText(content: Buffer): Secret<string> {
  return new Secret(textOf(content));
}

function textOf(content: Buffer): string {
  const mark = content.subarray(0, 2).toString('hex');
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return withoutLineEnd(new TextDecoder(encoding).decode(content));
}

/**
 * The text, and where there is a byte order mark also what versions up to 0.1.0 took for it: what they sealed has to open.
 * Undefined where there is no text.
 */
export function secretReadings(content: Buffer): Readings | undefined {
  const text = textOf(content);
  const asBefore = withoutLineEnd(content.toString('utf8'));
  if (text === '') return undefined;
  return text === asBefore ? [new Secret(text)] : [new Secret(text), new Secret(asBefore)];
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '');
}
