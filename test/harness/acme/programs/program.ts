/**
 * One ACME client of others with a home of its own, and how it is run: with an external account binding, and trusting
 * only the root of the server.
 */
import { execFile } from 'node:child_process';
import { type AcmeRecipe, acmeRootFile } from '../../../../src/base/acme-recipes.ts';
import type { Skip } from '../../processes/missing-program.ts';

/** The ACME server, and what `vault acme-client create` prints. */
export type AcmeService = {
  readonly directoryUrl: string;
  /** The root that the server's own certificate leads to. */
  readonly caFile: string;
  readonly kid: string;
  readonly hmacKey: string;
};

/** Whether the program reports success, and all that it printed. */
export type Ran = { readonly isDone: boolean; readonly output: string };

export type AcmeProgramHome = {
  /** Creates the account; only of programs that do so before the first order. */
  readonly register?: () => Promise<Ran>;
  readonly issue: (name: string) => Promise<Ran>;
  /** Renews now, whatever the server says; only of programs that can be told to. */
  readonly renew?: (name: string) => Promise<Ran>;
  /** Renews if renewal information says that it is time; only of programs that ask for it. */
  readonly renewIfDue?: (name: string) => Promise<Ran>;
  /** This and the next only of programs that can. */
  readonly revoke?: (name: string) => Promise<Ran>;
  /** Gives the account another key. */
  readonly changeKey?: () => Promise<Ran>;
  readonly deactivate?: () => Promise<Ran>;
  /** The file with the certificate, and the chain after it. */
  readonly certificate: (name: string) => string;
};

export type AcmeProgram = {
  readonly name: string;
  /** Whether it asks for renewal information (RFC 9773). */
  readonly asksForRenewalInfo?: boolean;
  /** Skips the test if the program is missing. */
  readonly needs: () => Skip;
  /** Prepares a home in an empty directory. */
  readonly home: (dir: string, service: AcmeService) => AcmeProgramHome;
};

/** Runs a program in its home with these variables and no others. */
export function ran(
  program: string,
  args: readonly string[],
  dir: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const { promise, resolve } = Promise.withResolvers<Ran>();
  const env = { PATH: process.env.PATH, HOME: dir, LC_ALL: 'C.UTF-8', ...environment };
  execFile(program, args, { cwd: dir, env, timeout: 60_000 }, (error, stdout, stderr) =>
    resolve({ isDone: error === null, output: stdout + stderr }),
  ).stdin?.end();
  return promise;
}

/** What the console shows for the program, with the root where it is here. */
export function linesFor(recipe: AcmeRecipe, service: AcmeService, domain: string): string {
  const { directoryUrl: directory, kid, hmacKey, caFile } = service;
  return recipe.lines({ directory, kid, hmacKey, domain }).replaceAll(acmeRootFile, caFile);
}
