/**
 * Tests that talk to a program of the system (openssl, nginx, …) run wherever it is installed. Elsewhere they say what
 * they missed; under VAULT_TEST_ALL=1, which the CI sets, nothing may be missed but what VAULT_TEST_WITHOUT names.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Options of a test that says, in the report, why it was skipped; none where it runs. */
export type Skip = { readonly skip?: string };

/**
 * Options for a test that needs `program`: it is skipped, with the reason in the report, where neither PATH nor the
 * folders before it have it. Throws instead under VAULT_TEST_ALL=1, unless VAULT_TEST_WITHOUT (names, with blanks in
 * between) lets this one be absent.
 */
export function needs(program: string, folders: readonly string[] = []): Skip {
  if (findProgram(program, folders) !== undefined) return {};
  const reason = `${program} is not installed`;
  const mayBeMissed = (process.env.VAULT_TEST_WITHOUT ?? '').split(' ').includes(program);
  if (process.env.VAULT_TEST_ALL === '1' && !mayBeMissed)
    throw new Error(`${reason}, and VAULT_TEST_ALL=1 lets no test be skipped`);
  return { skip: reason };
}

/** The path of a program: in one of the folders, or else in one of PATH. */
export function findProgram(program: string, folders: readonly string[] = []): string | undefined {
  const path = (process.env.PATH ?? '').split(delimiter);
  return [...folders, ...path].map((directory) => join(directory, program)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for this user: the next directory may have it.
    return false;
  }
}
