/**
 * Tests that talk to a program of the system (openssl, nginx, …) run wherever it is installed. Elsewhere they say what
 * they missed; under VAULT_TEST_ALL=1, which the CI sets, nothing may be missed.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Options for a test that needs `program`: it is skipped, with the reason in the report, where PATH does not have it.
 * Throws instead under VAULT_TEST_ALL=1.
 */
export function needs(program: string): { readonly skip?: string } {
  if (isInstalled(program)) return {};
  const reason = `${program} is not installed`;
  if (process.env.VAULT_TEST_ALL === '1')
    throw new Error(`${reason}, and VAULT_TEST_ALL=1 lets no test be skipped`);
  return { skip: reason };
}

function isInstalled(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => isProgram(join(directory, program)));
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
