/**
 * Names that people tell apart by eye: in lists, in audit events, in the question whether to revoke. A new one has no
 * invisible characters and no letters of several scripts, and no other name reads the same. Names from before this rule
 * stay valid.
 */

/** Control, format, unassigned and private characters, and others that are not shown. */
const invisible = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Characters that belong to no script, or to the script of the letter before them. */
const shared = /[\p{Script=Common}\p{Script=Inherited}]/u;

/** The scripts in common use (UAX #31, table 5). All others count as one. */
const scripts = {
  Arabic: /\p{Script=Arabic}/u,
  Armenian: /\p{Script=Armenian}/u,
  Bengali: /\p{Script=Bengali}/u,
  Bopomofo: /\p{Script=Bopomofo}/u,
  Cyrillic: /\p{Script=Cyrillic}/u,
  Devanagari: /\p{Script=Devanagari}/u,
  Ethiopic: /\p{Script=Ethiopic}/u,
  Georgian: /\p{Script=Georgian}/u,
  Greek: /\p{Script=Greek}/u,
  Gujarati: /\p{Script=Gujarati}/u,
  Gurmukhi: /\p{Script=Gurmukhi}/u,
  Han: /\p{Script=Han}/u,
  Hangul: /\p{Script=Hangul}/u,
  Hebrew: /\p{Script=Hebrew}/u,
  Hiragana: /\p{Script=Hiragana}/u,
  Kannada: /\p{Script=Kannada}/u,
  Katakana: /\p{Script=Katakana}/u,
  Khmer: /\p{Script=Khmer}/u,
  Lao: /\p{Script=Lao}/u,
  Latin: /\p{Script=Latin}/u,
  Malayalam: /\p{Script=Malayalam}/u,
  Myanmar: /\p{Script=Myanmar}/u,
  Oriya: /\p{Script=Oriya}/u,
  Sinhala: /\p{Script=Sinhala}/u,
  Tamil: /\p{Script=Tamil}/u,
  Telugu: /\p{Script=Telugu}/u,
  Thaana: /\p{Script=Thaana}/u,
  Thai: /\p{Script=Thai}/u,
  Tibetan: /\p{Script=Tibetan}/u,
} as const;

type Script = keyof typeof scripts | 'other';

/** The scripts that one name may have together ("highly restrictive" in UTS #39, section 5.2). */
const together: readonly (readonly Script[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];

/**
 * What is wrong with a new name, or with another text that people compare by eye (`subject`), and what to do: part of a
 * sentence. Undefined for a valid one.
 */
export function labelFault(text: string, subject = 'a name'): string | undefined {
  const characters = [...text];
  const hidden = characters.find((character) => invisible.test(character));
  if (hidden !== undefined) {
    return `${subject} must not contain the invisible or unassigned character ${codePoint(hidden)}; remove it`;
  }
  if (/\s\s/.test(text)) return `${subject} must not contain two spaces in a row (U+0020); remove one`;
  return mixedScripts(characters, subject);
}

/** The form by which names are compared: two names with the same one read alike. */
export function comparableLabel(text: string): string {
  if (isAscii.test(text)) return text.toLowerCase();
  // By upper case, which "ß" and "ss", and "ς" and "σ" share; by lower case before, because "ẞ" has no other upper
  // case.
  return text.normalize('NFKC').toLowerCase().toUpperCase().toLowerCase().normalize('NFKC');
}

/** `rule` for a name that may have ASCII characters only, with the first character that is not one. */
export function asciiRule(text: string, rule: string): string {
  const other = [...text].find((character) => !isAscii.test(character) || invisible.test(character));
  return other === undefined ? rule : `${rule}; replace or remove ${codePoint(other)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: the first character of ASCII.
const isAscii = /^[\u0000-\u007f]*$/;

function mixedScripts(characters: readonly string[], subject: string): string | undefined {
  const firstOf = new Map<Script, string>();
  for (const character of characters) {
    const script = scriptOf(character);
    if (script !== undefined && !firstOf.has(script)) firstOf.set(script, character);
  }
  const found = [...firstOf.keys()];
  if (found.length <= 1 || together.some((set) => found.every((script) => set.includes(script)))) {
    return undefined;
  }
  // The letters that imitate others are hardly ever the Latin ones.
  const [main, odd = main] = found.includes('Latin')
    ? ['Latin' as const, found.find((script) => script !== 'Latin')]
    : found;
  const letter = `${codePoint(firstOf.get(odd ?? 'other') ?? '')}${odd === 'other' ? '' : ` (${odd})`}`;
  const others = main === 'other' ? 'letters of another script' : `${main} letters`;
  return `${subject} must not mix ${letter} with ${others}; write it in one script`;
}

function scriptOf(character: string): Script | undefined {
  if (shared.test(character)) return undefined;
  for (const [script, pattern] of Object.entries(scripts)) {
    if (pattern.test(character)) return script as Script;
  }
  return 'other';
}

function codePoint(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `U+${hex.padStart(4, '0')}`;
}
