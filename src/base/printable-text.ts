/** Cleans text from outside for terminals, logs and pages: it may contain anything and have any length. */

/** The text without control and other invisible characters, cut after `most` characters. */
export function shortened(text: string, most: number): string {
  // Cut first, because cleaning a megabyte takes time.
  const clean = text
    .slice(0, 4 * most)
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}
