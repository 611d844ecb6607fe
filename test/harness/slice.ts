/** Which part of a large table runs. `npm run test:whole` runs all of it. */

export const isWhole = process.env.VAULT_TEST_WHOLE === '1';

/** Follows from the content of the last commit (test/main.ts), so that every part runs over commits; 0 for a single file. */
export const slice = Number(process.env.VAULT_TEST_SLICE ?? '0');
