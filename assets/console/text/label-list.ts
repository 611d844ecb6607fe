/** Labels as people type them. */

/** Splits text at commas. Values of labels may contain spaces, and no comma. */
export function labelsIn(text: string): string[] {
  return text
    .split(',')
    .map((label) => label.trim())
    .filter(Boolean);
}
