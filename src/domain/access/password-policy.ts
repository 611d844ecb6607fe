/** The password policy: long passwords that are not among the common ones. Its messages never repeat the password. */
import common from './common-passwords.json' with { type: 'json' };

const shortest = 12;

/** In bytes, because they determine the cost of hashing. */
export const maxPasswordLength = 1024;

const fewestDifferent = 5;

/** Common passwords in lower case: long ones as they are, shorter ones without padding. */
const commonWords: ReadonlySet<string> = new Set(common.words.split(' '));

/** Why the password is not acceptable for this name, as a clause; undefined if it is. */
export function passwordIssue(name: string, password: string): string | undefined {
  const characters = [...password.normalize('NFC')];
  if (characters.length < shortest) return `a password has at least ${shortest} characters`;
  if (Buffer.byteLength(password) > maxPasswordLength)
    return `a password has at most ${maxPasswordLength} bytes`;
  const lower = password.normalize('NFC').toLowerCase();
  const unpadded = withoutPadding(lower);
  const own = name.toLowerCase();
  if (lower.includes(own) && lower.length - own.length < shortest) {
    return 'the password is too similar to the name; use several unrelated words';
  }
  if (
    new Set(characters).size < fewestDifferent ||
    commonWords.has(lower) ||
    commonWords.has(unpadded) ||
    commonWords.has(unit(lower))
  ) {
    return 'the password is too common; use several unrelated words';
  }
  return undefined;
}

/** The text without leading and trailing digits and symbols: `password1234!` is as weak as `password`. */
function withoutPadding(text: string): string {
  const characters = [...text];
  const isLetter = (character: string) => /^\p{L}$/u.test(character);
  return characters.slice(characters.findIndex(isLetter), characters.findLastIndex(isLetter) + 1).join('');
}

/** The repeated part of a text: `secret` in `secretsecret`. */
function unit(text: string): string {
  return text.slice(0, (text + text).indexOf(text, 1));
}
