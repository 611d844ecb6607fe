/** Cleans text from outside for terminals, logs, files and pages: it may contain anything and have any length. */

/** C0, DEL, C1, line separators and marks of direction: a terminal would act on them, or reorder what it shows. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern matches control characters.
const acting = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The same without C0, which JSON has only between its tokens. */
const actingInJson = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** The text without control and other invisible characters, cut after `most` characters. */
export function shortened(text: string, most: number): string {
  // Cut first, because cleaning a megabyte takes time.
  const clean = text
    .slice(0, 4 * most)
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}

/** The text with `?` for every character that a terminal would act on, line breaks included. */
export function printable(text: string): string {
  return text.replace(acting, '?');
}

/** The lines with `?` for every other character that a terminal would act on. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/** The text with every character that a terminal would act on as `\uXXXX`, except tabs and line feeds, for CSV. */
export function escapedCell(text: string): string {
  return text.replace(acting, (character) => (/[\t\n]/.test(character) ? character : asEscape(character)));
}

/** The same JSON, where strings have the characters that a terminal would act on as `\uXXXX`. */
export function escapedJson(json: string): string {
  return json.replace(actingInJson, asEscape);
}

function asEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
