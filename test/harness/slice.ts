/** Which part of a large table runs. `npm run test:whole` runs all of it. */

export const isWhole = process.env.VAULT_TEST_WHOLE === '1';

/**
 * Follows from the content of the last commit (test/main.ts), so that every part runs over commits; 0 for a single
 * file.
 */
export const slice = Number(process.env.VAULT_TEST_SLICE ?? '0');

/**
 * `count` rows of a table: others in another commit or at another `turn`, and all of them with `npm run test:whole`.
 */
export function inTurn<T>(rows: readonly T[], count: number, turn = 0): T[] {
  if (isWhole || count >= rows.length) return [...rows];
  const first = ((slice + turn) * count) % rows.length;
  return [...rows, ...rows].slice(first, first + count);
}
