/**
 * Tests that use a program of the system (openssl, nginx, …) are skipped with a reason if it is not installed. With
 * VAULT_TEST_ALL=1, which the CI sets, only programs in VAULT_TEST_WITHOUT may be missing.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The option that skips a test, with the reason for the report; empty if the test runs. */
export type Skip = { readonly skip?: string };

/**
 * Options for a test that needs `program`: the test is skipped if the program is neither in `folders` nor in PATH. With
 * VAULT_TEST_ALL=1 this throws instead, unless VAULT_TEST_WITHOUT (names separated by spaces) lists the program.
 */
export function needs(program: string, folders: readonly string[] = []): Skip {
  return findProgram(program, folders) === undefined ? without(program) : {};
}

/** The same for what is no program but a file, such as a library. */
export function needsFile(name: string, path: string): Skip {
  return existsSync(path) ? {} : without(name);
}

function without(program: string): Skip {
  const reason = `${program} is not installed`;
  const mayBeMissed = (process.env.VAULT_TEST_WITHOUT ?? '').split(' ').includes(program);
  if (process.env.VAULT_TEST_ALL === '1' && !mayBeMissed)
    throw new Error(`${reason}, and VAULT_TEST_ALL=1 does not allow skipped tests`);
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
    // Missing or not executable; try the next directory.
    return false;
  }
}
