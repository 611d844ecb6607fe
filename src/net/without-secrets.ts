/**
 * Hides secrets in the text of programs and services, which quote them in part, over several lines or encoded. Takes
 * time linear in the secrets and in the text, and memory for the text only.
 */

/** Shorter values are not secrets, and would match ordinary words. */
const shortest = 4;
/** This many characters in a row from a secret are hidden even if the rest of the secret is missing. */
const telling = 16;

/** How many characters of a secret a text may show that was cut in the middle of it. */
export const maxPartial = telling - 1;

/**
 * Secrets that are longer together are not searched for: the whole text is hidden, so that a failure costs little time.
 */
const maxSearched = 32_768;

const replacement = '[secret]';
const lineBreaks = /[\r\n]+/g;

/**
 * The text with `[secret]` in place of each value, each line of a value, the URL-encoded, JSON and base64 forms of a
 * value, and all parts of these with at least 16 characters. Line breaks in the text do not matter. Very long secrets
 * hide all of the text.
 */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  if (text === '') return text;
  if (secrets.reduce((sum, { length }) => sum + length, 0) > maxSearched) return replacement;
  const pieces = new PiecesOf(text.replace(lineBreaks, ''));
  for (const form of new Set(secrets.flatMap(formsOf))) pieces.hide(form);
  return replaced(text, pieces.isHidden);
}

/**
 * The result of `withoutSecrets` for a text whose beginning was cut off: without the characters at its start that may
 * be the end of a secret, of which too little is left to recognize it.
 */
export function withoutPartialStart(hidden: string): string {
  const start = hidden.startsWith(replacement) ? replacement.length : 0;
  const next = hidden.indexOf(replacement, start);
  const end = next === -1 ? start + maxPartial : Math.min(start + maxPartial, next);
  return hidden.slice(0, start) + hidden.slice(end);
}

/** The pieces of a text by their length, of which only those are indexed that a secret has. */
class PiecesOf {
  readonly isHidden: Uint8Array;
  readonly #text: string;
  readonly #places = new Map<number, Map<string, number[]>>();

  constructor(text: string) {
    this.#text = text;
    this.isHidden = new Uint8Array(text.length);
  }

  /** Hides the form: all of it up to 16 characters, and each piece of 16 characters of a longer one. */
  hide(form: string): void {
    const length = Math.min(form.length, telling);
    const places = this.#places.get(length) ?? this.#indexed(length);
    for (let at = 0; at + length <= form.length; at += 1) {
      const piece = form.slice(at, at + length);
      for (const place of places.get(piece) ?? []) this.isHidden.fill(1, place, place + length);
      // Hidden once and for all: a secret that repeats itself is not searched for again.
      places.delete(piece);
    }
  }

  #indexed(length: number): Map<string, number[]> {
    const places = new Map<string, number[]>();
    for (let at = 0; at + length <= this.#text.length; at += 1) {
      const piece = this.#text.slice(at, at + length);
      const others = places.get(piece);
      if (others === undefined) places.set(piece, [at]);
      else others.push(at);
    }
    this.#places.set(length, places);
    return places;
  }
}

/** The forms of a secret to look for, none shorter than 4 characters. */
function formsOf(secret: string): string[] {
  const lines = secret.split(lineBreaks).map((line) => line.trim());
  return [...lines, ...[secret, secret.trim()].flatMap(encodingsOf)].filter(
    ({ length }) => length >= shortest,
  );
}

function encodingsOf(value: string): string[] {
  if (value.length < shortest) return [];
  const inUrl = encodeURIComponent(value.toWellFormed());
  return [
    value.replace(lineBreaks, ''),
    JSON.stringify(value).slice(1, -1),
    inUrl,
    inUrl.replaceAll('%20', '+'),
    ...base64FormsOf(value),
  ];
}

/**
 * The base64 of a value after 0 to 2 other bytes, as in `user:password`, without the characters that depend on these;
 * and also without those that depend on what follows.
 */
function base64FormsOf(value: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const [first, end] = [Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6)];
    return (
      (['base64', 'base64url'] as const)
        .map((encoding) => bytes.toString(encoding).slice(first))
        // The pieces of a longer form are those of its beginning, and more.
        .flatMap((form) => (form.length > 2 * telling ? [form] : [form, form.slice(0, end - first)]))
    );
  });
}

/** The text with each run of hidden characters replaced. `isHidden` leaves line breaks out. */
function replaced(text: string, isHidden: Uint8Array): string {
  let shown = '';
  let at = 0;
  let from = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === '\n' || character === '\r') continue;
    const isSecret = isHidden[at] === 1;
    const isFirst = isSecret && (at === 0 || isHidden[at - 1] !== 1);
    at += 1;
    if (isFirst) shown += text.slice(from, index) + replacement;
    if (isSecret) from = index + 1;
  }
  return shown + text.slice(from);
}
