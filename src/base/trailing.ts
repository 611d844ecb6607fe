/** The end of a text without its last characters, in time linear in it: `replace(/x+$/, '')` takes quadratic time. */

/** The text without any of this one character at its end. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}
