/** Text from others, made fit for terminals, logs and pages: it may be anything, and of any length. */

/** Without control and other invisible characters, and cut after `most` characters. */
export function shortened(text: string, most: number): string {
  // Cut first: nobody should wait for a megabyte to be cleaned.
  const clean = text
    .slice(0, 4 * most)
    .replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
  return clean.length > most ? `${clean.slice(0, most)}…` : clean;
}
