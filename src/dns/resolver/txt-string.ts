/** TXT data in zone file format, which several providers use: quoted strings (RFC 1035 §5.1). */

/** The quoted value, split into strings of at most 255 bytes. The value is ASCII. */
export function quoteTxt(value: string): string {
  const strings = value.match(/[\s\S]{1,255}/g) ?? [''];
  return strings.map((text) => `"${text.replace(/[\\"]/g, '\\$&')}"`).join(' ');
}

/** The unquoted value: strings concatenated, escapes resolved. Text without quotes is returned unchanged. */
export function unquoteTxt(data: string): string {
  const text = data.trim();
  if (!text.startsWith('"')) return text;
  // The closing quote is optional in the pattern, so that a missing one does not restart the search.
  const strings = [...text.matchAll(/"((?:[^"\\]|\\[\s\S])*)("?)/g)].filter(([, , end]) => end === '"');
  return strings.map(([, quoted = '']) => unescapeTxt(quoted)).join('');
}

/** The quoted values; existing ones keep their current form. */
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
