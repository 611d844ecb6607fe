/** Runs commands on the vault of a test, with files and a reachable CA. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ScriptedAcme, type ScriptedAcmeOptions, scriptedAcme } from '../ca/scripted-acme.ts';
import { tempDir } from '../temp-dir.ts';
import { type Launch, type Outcome, vault } from './vault-process.ts';

export type CommandLine = {
  readonly data: string;
  /** Runs `vault` with these arguments on the vault of the test. */
  readonly run: (...args: readonly string[]) => Promise<Outcome>;
  /** The same; the command must succeed. */
  readonly done: (...args: readonly string[]) => Promise<Outcome>;
  /** The same with `--json`. Returns the parsed output. */
  readonly json: <T>(...args: readonly string[]) => Promise<T>;
  /** The command must fail with this exit code and this text on stderr, and print nothing on stdout. */
  readonly refused: (args: readonly string[], stderr: string | RegExp, code?: 1 | 2) => Promise<void>;
  /** The path of a new file. */
  readonly file: (content: string | Buffer, name?: string) => string;
  /** Whether any file of the data directory contains these bytes. */
  readonly holds: (bytes: string | Buffer) => boolean;
};

export function commandLine(t: Pick<TestContext, 'after'>, launch: Launch = {}): CommandLine {
  const dir = tempDir(t);
  const data = join(dir, 'data');
  let files = 0;
  const run = (...args: readonly string[]) => vault([...args, '--data-dir', data], launch);
  const done = async (...args: readonly string[]) => {
    const outcome = await run(...args);
    assert.equal(outcome.code, 0, `${args.join(' ')}: ${outcome.stderr}`);
    return outcome;
  };
  return {
    data,
    run,
    done,
    json: async (...args) => JSON.parse((await done(...args, '--json')).stdout),
    refused: async (args, expected, code = 1) => {
      const outcome = await run(...args);
      assert.deepEqual([outcome.code, outcome.stdout], [code, ''], `${args.join(' ')}: ${outcome.stderr}`);
      if (typeof expected === 'string') assert.equal(withoutNews(outcome.stderr), expected);
      else assert.match(withoutNews(outcome.stderr), expected);
    },
    file: (content, name = `file-${files++}`) => {
      const path = join(dir, name);
      writeFileSync(path, content);
      return path;
    },
    holds: (bytes) => readdirSync(data).some((name) => readFileSync(join(data, name)).includes(bytes)),
  };
}

/** A command line with a CA that accepts every challenge, added as the issuer `ca`. */
export async function commandLineWithCa(
  t: Pick<TestContext, 'after'>,
  options: ScriptedAcmeOptions = {},
): Promise<CommandLine & { readonly ca: ScriptedAcme }> {
  const line = commandLine(t);
  const ca = await scriptedAcme(t, options);
  await addCa(line, ca);
  return { ...line, ca };
}

/** Adds a scripted CA as an issuer, trusting its root and accepting its terms. */
export async function addCa(
  { done, file }: CommandLine,
  { directoryUrl, ca }: ScriptedAcme,
  name = 'ca',
  ...more: readonly string[]
): Promise<void> {
  const trust = ca === undefined ? [] : ['--ca-file', file(ca)];
  await done(
    'issuer',
    'add',
    '--name',
    name,
    '--directory',
    directoryUrl,
    ...trust,
    '--accept-terms',
    ...more,
  );
}

/** Removes the line about the new vault, which the first command prints. */
function withoutNews(stderr: string): string {
  return stderr.replace(/^Created a new vault in .*\n/, '');
}

/** Splits a command at spaces. */
export function commandWords(text: string): string[] {
  return text.trim().split(/\s+/);
}
