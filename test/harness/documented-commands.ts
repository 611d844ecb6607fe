/**
 * The commands of a document, and a place to run them as a reader would: with the paths, names and addresses of the
 * document standing for those of a sandbox, in what is run and, back again, in what comes out.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { loopbackSetting } from './loopback-guard.ts';
import { tempDir } from './temp-dir.ts';
import { fromExecutable } from './vault-process.ts';

export type DocumentedCommand = {
  /** The heading above it. */
  readonly section: string;
  /** As it stands behind the prompt; lines that end with a backslash go on. */
  readonly text: string;
  /** The lines that it prints, standard output and error as a terminal shows them. */
  readonly output: readonly string[];
  readonly line: number;
};

/** `$` for anybody, `#` for root; a comment of a file begins with `#` too, but with no program. */
const prompt = /^ {4}(?:\$|#(?= (?:vault|sudo|install|useradd|systemctl|journalctl|chown|chmod)\b)) (.*)$/;

/** All commands with a prompt, in their order. */
export function documentedCommands(markdown: string): DocumentedCommand[] {
  const found: { section: string; text: string; output: string[]; line: number }[] = [];
  let section = '';
  let open: (typeof found)[number] | undefined;
  const all = markdown.split('\n');
  for (const [index, line] of all.entries()) {
    const heading = /^#{2,3} (.*)$/.exec(line)?.[1];
    const command = prompt.exec(line)?.[1];
    if (heading !== undefined) section = heading;
    if (command !== undefined) {
      open = { section, text: command, output: [], line: index + 1 };
      found.push(open);
    } else if (open !== undefined && line.startsWith('    ')) {
      if (open.text.endsWith('\\') && open.output.length === 0) open.text += `\n${line.slice(4)}`;
      else open.output.push(line.slice(4));
    } else if (line !== '' || !all[index + 1]?.startsWith('    ')) open = undefined;
  }
  return found;
}

/** What the document says and what stands for it in the sandbox; longer ones first where one begins with another. */
export type StandIn = readonly [documented: string, real: string];

export type Sandbox = {
  readonly root: string;
  /** The path that stands for one of the document. */
  readonly path: (documented: string) => string;
  /**
   * Runs a command, with what would be typed, and returns the lines it prints, in the words of the document. A server goes
   * on behind the next commands, and variables keep their values.
   */
  readonly run: (text: string, options?: RunOptions) => Promise<Printed>;
};

/** `code` is null for a server, which goes on. */
export type Printed = { readonly lines: string[]; readonly code: number | null };

export type RunOptions = {
  /** Typed when the text before it stands on the terminal. */
  readonly typed?: readonly (readonly [question: string, answer: string])[];
  readonly standIns?: readonly StandIn[];
  readonly environment?: Readonly<Record<string, string>>;
};

/** Folders of the document that are folders of the sandbox. */
const folders = [
  '/var/lib/vault',
  '/var/lib/new',
  '/backup',
  '/etc/vault',
  '/etc/systemd/system',
  '/var/log/vault',
  '/tmp/drill',
];

/** A shell with `vault`, and `sudo` that stays who it is. */
export function sandbox(t: Pick<TestContext, 'after'>): Sandbox {
  const root = tempDir(t);
  const programs = join(root, 'programs');
  mkdirSync(programs);
  program('vault', `exec ${fromExecutable.join(' ')} "$@"`);
  program('sudo', '[ "$1" != -u ] || shift 2\nexec "$@"');
  const path = (documented: string) => join(root, documented);
  const variables: string[] = [];
  for (const folder of folders.slice(0, 1)) mkdirSync(path(folder), { recursive: true, mode: 0o700 });
  for (const folder of ['/backup', '/tmp', '/etc/vault', '/etc/systemd/system', '/var/log/vault']) {
    mkdirSync(path(folder), { recursive: true, mode: 0o700 });
  }
  return { root, path, run };

  function program(name: string, body: string): void {
    const file = join(programs, name);
    writeFileSync(file, `#!/bin/sh\n${body}\n`);
    chmodSync(file, 0o755);
  }

  async function run(text: string, { typed = [], standIns = [], environment = {} }: RunOptions = {}) {
    const all: StandIn[] = [...standIns, ...folders.map((folder): StandIn => [folder, path(folder)])];
    const real = all.reduce((command, [documented, stand]) => command.replaceAll(documented, stand), text);
    const { VAULT_DATA_DIR: _, ...inherited } = process.env;
    const isServer = /^vault serve\b/.test(text);
    const body = isServer
      ? `exec ${real.replace(/ &$/, '')} 2>&1`
      : `{ ${[...variables, real].join('\n')}\n} 2>&1`;
    if (/^\w+=\S*$/.test(text)) variables.push(real);
    const [file = '', ...args] =
      typed.length > 0
        ? ['script', '--quiet', '--return', '--command', real, '/dev/null']
        : ['/bin/sh', '-c', body];
    const child = spawn(file, args, {
      cwd: root,
      env: {
        ...inherited,
        SHELL: '/bin/sh',
        PATH: `${programs}:${process.env.PATH}`,
        VAULT_DATA_DIR: path('/var/lib/vault'),
        // What the documents name elsewhere is here.
        VAULT_ALLOW_OUTBOUND: loopbackSetting,
        ...environment,
      },
    });
    const ended = once(child, 'close');
    let seen = '';
    let next = 0;
    child.stderr.resume();
    const listening = new Promise<void>((resolve) => {
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        seen += chunk;
        // Two streams: either may come first.
        if (/^listening on /m.test(seen) && seen.includes('"msg":"listening"')) resolve();
        const [question, answer] = typed[next] ?? [];
        if (question === undefined || !seen.trimEnd().endsWith(question)) return;
        next += 1;
        child.stdin.write(`${answer}\n`);
      });
    });
    if (typed.length === 0) child.stdin.end();
    if (isServer) {
      t.after(async () => {
        child.kill('SIGKILL');
        await ended;
      });
      await Promise.race([listening, ended]);
    } else await ended;
    const back = all.reduceRight((output, [documented, stand]) => output.replaceAll(stand, documented), seen);
    const lines = back.replaceAll('\r', '').split('\n').filter(Boolean);
    return { lines, code: isServer ? null : child.exitCode };
  }
}

/** What differs at each run, as the document shows one of it. */
const varying: readonly (readonly [shown: RegExp, real: string])[] = [
  [/…/g, '.*'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\\\.\d+)?Z/g, '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z'],
  [/vk_\w+/g, 'vk_\\w+'],
  [/sha256\/\/[\w+/]{43}=/g, 'sha256//[\\w+/]{43}='],
  [/\b[0-9a-f]{64}\b/g, '[0-9a-f]{64}'],
  [/\b[0-9a-f]{16}\b/g, '[0-9a-f]{16}'],
  [/"[\w-]{43}"/g, '"[\\w-]{43}"'],
  [/\b\d+(\\\.\d+)? (MiB|GiB|ms|s)\b/g, '\\d+(\\.\\d+)? (MiB|GiB|ms|s)'],
  [/\(\d+ %\)/g, '\\(\\d+ %\\)'],
  [/ {2,}/g, ' +'],
];

/**
 * Fails where what was printed is not what the document shows, but for times, ids, sizes and what `…` stands for. Of a
 * server the document shows only some lines; a command without any output there has to succeed.
 */
export function assertAsDocumented(command: DocumentedCommand, { lines, code }: Printed): void {
  const found = lines.map((line) => line.trim());
  const where = `line ${command.line}: ${command.text}\n${found.join('\n')}`;
  if (command.output.length === 0 && code !== null) {
    assert.equal(code, 0, where);
    return;
  }
  const patterns = command.output.map((line) => patternOf(line.trim()));
  if (/^vault serve\b/.test(command.text)) {
    for (const pattern of patterns)
      assert.ok(
        found.some((line) => pattern.test(line)),
        where,
      );
    return;
  }
  assert.equal(found.length, patterns.length, where);
  for (const [index, pattern] of patterns.entries()) assert.match(found[index] ?? '', pattern, where);
}

function patternOf(line: string): RegExp {
  const literal = line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  // In a literal, the brackets of a share are escaped already.
  const pattern = varying.reduce(
    (text, [shown, real]) => text.replace(shown, real),
    literal.replace(/\\\((\d+) %\\\)/g, '($1 %)'),
  );
  return new RegExp(`^${pattern}$`);
}
