/**
 * Passwords and passphrases in files: what a person would have typed, whatever the editor put around it. Some begin a file
 * with a byte order mark, some write UTF-16, most end the line.
 */
import { Secret } from '../base/secret.ts';

/** The text without byte order mark and the end of its line; UTF-16 where the mark says so, otherwise UTF-8. */
export function secretText(content: Buffer): Secret<string> {
  const mark = content.subarray(0, 2).toString('hex');
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return new Secret(withoutLineEnd(new TextDecoder(encoding).decode(content)));
}

/**
 * The text, and where there is a byte order mark also what versions up to 0.1.0 took for it: what they sealed has to open.
 */
export function secretReadings(content: Buffer): readonly [Secret<string>, ...Secret<string>[]] {
  const text = secretText(content);
  const asBefore = withoutLineEnd(content.toString('utf8'));
  return text.expose().length === asBefore.length ? [text] : [text, new Secret(asBefore)];
}

function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '');
}
