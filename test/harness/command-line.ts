/** Commands on one vault that lives as long as a test, with files to hand to them, and a CA that they can reach. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type ScriptedAcme, type ScriptedAcmeOptions, scriptedAcme } from './scripted-acme.ts';
import { tempDir } from './temp-dir.ts';
import { type Launch, type Outcome, vault } from './vault-process.ts';

export type CommandLine = {
  readonly data: string;
  /** Runs `vault` with these words on the vault of the test. */
  readonly run: (...args: readonly string[]) => Promise<Outcome>;
  /** The same; it must succeed. */
  readonly done: (...args: readonly string[]) => Promise<Outcome>;
  /** The same with `--json`; what it prints. */
  readonly json: <T>(...args: readonly string[]) => Promise<T>;
  /** It must be refused with this code and these words on stderr, and print nothing. */
  readonly refused: (args: readonly string[], stderr: string | RegExp, code?: 1 | 2) => Promise<void>;
  /** The path of a new file. */
  readonly file: (content: string | Buffer, name?: string) => string;
  /** Whether any file of the data directory holds these bytes. */
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

/** A command line with a CA that takes every proof for good, added as the issuer `ca`. */
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

/** The line that says a command made the vault comes with whatever command is first. */
function withoutNews(stderr: string): string {
  return stderr.replace(/^Created a new vault in .*\n/, '');
}

/** The words of a command as people write it, split at blanks. */
export function commandWords(text: string): string[] {
  return text.trim().split(/\s+/);
}
