/** Which passwords people may choose: long ones that nobody tries first. Pure, and it never repeats what was typed. */
import common from './common-passwords.json' with { type: 'json' };

const shortest = 12;

/** Bytes, because hashing takes as many as it is given. */
export const longestPassword = 1024;

const fewestDifferent = 5;

/** What people have chosen most, in lower case: long ones as they are, of the shorter ones what remains without padding. */
const commonWords: ReadonlySet<string> = new Set(common.words.split(' '));

/** Why the password is refused to the person of this name, as the end of a sentence; undefined where it is fine. */
export function passwordComplaint(name: string, password: string): string | undefined {
  const characters = [...password.normalize('NFC')];
  if (characters.length < shortest) return `a password has at least ${shortest} characters`;
  if (Buffer.byteLength(password) > longestPassword) return `a password has at most ${longestPassword} bytes`;
  const lower = password.normalize('NFC').toLowerCase();
  const unpadded = withoutPadding(lower);
  const own = name.toLowerCase();
  if (lower.includes(own) && lower.length - own.length < shortest) {
    return 'the password is little more than the name; several words in a row make a good one';
  }
  if (
    new Set(characters).size < fewestDifferent ||
    commonWords.has(lower) ||
    commonWords.has(unpadded) ||
    commonWords.has(unit(lower))
  ) {
    return 'this password is among the first that are tried; several words in a row make a good one';
  }
  return undefined;
}

/** `password1234!` is no better than `password`. */
function withoutPadding(text: string): string {
  const characters = [...text];
  const isLetter = (character: string) => /^\p{L}$/u.test(character);
  return characters.slice(characters.findIndex(isLetter), characters.findLastIndex(isLetter) + 1).join('');
}

/** What is only repeated: `secret` in `secretsecret`. */
function unit(text: string): string {
  return text.slice(0, (text + text).indexOf(text, 1));
}
