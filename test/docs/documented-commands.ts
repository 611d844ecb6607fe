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
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { fromExecutable } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

export type DocumentedCommand = {
  /** The heading above it. */
  readonly section: string;
  /**
   * What follows the prompt, with the next line after a backslash, and with the lines of a here-document up to `END`.
   */
  readonly text: string;
  /** The lines that it prints, standard output and error as a terminal shows them. */
  readonly output: readonly string[];
  readonly line: number;
};

/** Programs behind a root prompt: without them, a line that begins with `#` is a comment of a file. */
const rootPrograms =
  'cat|chmod|chown|cp|head|install|journalctl|mv|openssl|rm|sudo|systemctl|systemd-run|useradd|vault';

/** `$` for any user, `#` for root. */
const prompt = new RegExp(`^ {4}(?:\\$|#(?= (?:${rootPrograms})\\b)) (.*)$`);

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
      if (continues(open.text) && open.output.length === 0) open.text += `\n${line.slice(4)}`;
      else open.output.push(line.slice(4));
    } else if (line !== '' || !all[index + 1]?.startsWith('    ')) open = undefined;
  }
  return found;
}

function continues(text: string): boolean {
  return text.endsWith('\\') || (text.includes("<<'END'") && !text.endsWith('\nEND'));
}

/** What the document says and what stands for it in the sandbox; longer ones first where one begins with another. */
export type StandIn = readonly [documented: string, real: string];

export type Sandbox = {
  readonly root: string;
  /** The path that stands for one of the document. */
  readonly path: (documented: string) => string;
  /**
   * Runs a command, with what would be typed, and returns the lines it prints, in the words of the document. A server
   * goes on behind the next commands, and variables keep their values.
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

/** How the commands of a document are run. */
type Place = {
  readonly root: string;
  /** Programs that come before the system's. */
  readonly programs: string;
  /** Folders of the document that are folders of the sandbox; longer ones first where one begins with another. */
  readonly folders: readonly string[];
  /** What starts the shell. */
  readonly through: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
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
  '/home/me',
];

/** A shell with `vault`, and `sudo` that stays who it is. */
export function sandbox(t: Pick<TestContext, 'after'>): Sandbox {
  const root = tempDir(t);
  const programs = join(root, 'programs');
  mkdirSync(programs);
  program(programs, 'vault', `exec ${fromExecutable.join(' ')} "$@"`);
  program(programs, 'sudo', '[ "$1" != -u ] || shift 2\nexec "$@"');
  for (const folder of folders) {
    if (!['/var/lib/new', '/tmp/drill'].includes(folder))
      mkdirSync(join(root, folder), { recursive: true, mode: 0o700 });
  }
  mkdirSync(join(root, 'tmp'));
  const { VAULT_DATA_DIR: _, ...inherited } = process.env;
  const environment = {
    ...inherited,
    VAULT_DATA_DIR: join(root, '/var/lib/vault'),
    // What the documents name elsewhere is here.
    VAULT_ALLOW_OUTBOUND: loopbackSetting,
  };
  return shellIn(t, { root, programs, folders, through: [], environment });
}

/** A shell script of this name, to be found before the system's program. */
export function program(folder: string, name: string, body: string): void {
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
}

/**
 * What a shell has where HashiCorp's program of the same name is used, too. None of it may change what a command does.
 */
export const otherVaultSettings = {
  VAULT_ADDR: 'https://vault.corp.example:8200',
  VAULT_CACERT: '/etc/ssl/corp.pem',
  VAULT_FORMAT: 'json',
  VAULT_LOG_LEVEL: 'trace',
  VAULT_NAMESPACE: 'admin/',
  VAULT_SKIP_VERIFY: 'true',
  VAULT_TOKEN: 'hvs.not-for-this-vault',
};

/** Runs commands of a document in a place. */
export function shellIn(t: Pick<TestContext, 'after'>, place: Place): Sandbox {
  const { root, through } = place;
  const path = (documented: string) => (place.folders.length === 0 ? documented : join(root, documented));
  const variables: string[] = [];
  return { root, path, run };

  async function run(text: string, { typed = [], standIns = [], environment = {} }: RunOptions = {}) {
    const all: StandIn[] = [...standIns, ...place.folders.map((folder): StandIn => [folder, path(folder)])];
    const real = all.reduce((command, [documented, stand]) => command.replaceAll(documented, stand), text);
    const isServer = /^vault serve\b/.test(text);
    const body = isServer
      ? `exec ${real.replace(/ &$/, '')} 2>&1`
      : `{ ${[...variables, real].join('\n')}\n} 2>&1`;
    if (/^\w+=\S*$/.test(text)) variables.push(real);
    const words =
      typed.length > 0
        ? ['script', '--quiet', '--return', '--command', real, '/dev/null']
        : ['/bin/sh', '-c', body];
    const [file = '', ...args] = [...through, ...words];
    const child = spawn(file, args, {
      cwd: root,
      env: {
        ...otherVaultSettings,
        ...place.environment,
        SHELL: '/bin/sh',
        PATH: `${place.programs}:${place.environment.PATH}`,
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
  if (command.output.some((line) => line.trim() === '…')) {
    // A line of dots stands for any lines.
    const all = patterns.map(({ source }) => (source === '^.*$' ? '(?:.*\n)*' : `${source.slice(1, -1)}\n`));
    assert.match(`${found.join('\n')}\n`, new RegExp(`^${all.join('')}$`), where);
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
