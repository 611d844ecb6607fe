/** TXT data in the form of zone files, which several providers speak: strings in quotes (RFC 1035 §5.1). */

/** In quotes, cut into strings of at most 255 bytes. The value is ASCII. */
export function quoteTxt(value: string): string {
  const strings = value.match(/[\s\S]{1,255}/g) ?? [''];
  return strings.map((text) => `"${text.replace(/[\\"]/g, '\\$&')}"`).join(' ');
}

/** What it says: the strings joined, escapes resolved. Text without quotes is taken as it is. */
export function unquoteTxt(data: string): string {
  const text = data.trim();
  if (!text.startsWith('"')) return text;
  // The closing quote is optional in the pattern, so that one that is missing does not start the search again.
  const strings = [...text.matchAll(/"((?:[^"\\]|\\[\s\S])*)("?)/g)].filter(([, , end]) => end === '"');
  return strings.map(([, quoted = '']) => unescapeTxt(quoted)).join('');
}

/** These values in quotes; those that are held already, in quotes too, as they are held. */
export function replacedTxt(held: readonly string[], values: readonly string[]): string[] {
  const kept = held.filter((data) => values.includes(unquoteTxt(data)));
  const known = kept.map(unquoteTxt);
  return [...kept, ...values.filter((value) => !known.includes(value)).map(quoteTxt)];
}

function unescapeTxt(text: string): string {
  return text.replace(/\\(\d{3}|[\s\S])/g, (_, escaped: string) =>
    escaped.length === 3 ? String.fromCharCode(Number(escaped)) : escaped,
  );
}
