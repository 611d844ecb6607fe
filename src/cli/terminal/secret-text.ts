/**
 * Reads passwords and passphrases from files. Some editors add a byte order mark, some write UTF-16, and most end the
 * line with a line break.
 */
import { Secret } from '../../base/secret.ts';

/** The possible readings, the most likely first. */
export type Readings = readonly [Secret<string>, ...Secret<string>[]];

/** The text without byte order mark and final line break; UTF-16 if the mark says so, otherwise UTF-8. */
export function secretText(content: Buffer): Secret<string> {
  return new Secret(textOf(content));
}

function textOf(content: Buffer): string {
  const mark = content.subarray(0, 2).toString('hex');
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return withoutLineEnd(new TextDecoder(encoding).decode(content));
}

/**
 * The text, and with a byte order mark also the text that versions up to 0.1.0 read, so that what they sealed still
 * opens. Undefined for an empty file.
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
