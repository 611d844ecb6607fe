/**
 * Runs the command line: in the process of the test where the command needs none of its own, and the built executable
 * or the sources as a process where it does. With VAULT_TEST_WHOLE=1, as in `npm run test:whole`, all commands are
 * processes.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, constants, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import './child-processes.ts';
import manifest from '../../../package.json' with { type: 'json' };
import { realWorld, type World } from '../../../src/base/world.ts';
import type { Terminal } from '../../../src/cli/terminal/terminal.ts';
import { loopbackSetting } from '../loopback-guard.ts';

const root = new URL('../../../', import.meta.url);

/** Program and first arguments. Tests normally use the executable, which `npm test` builds first. */
export const fromSource = [process.execPath, fileURLToPath(new URL('src/main.ts', root))] as const;
export const fromExecutable = [fileURLToPath(new URL('dist/vault', root))] as const;

export type Launch = {
  /** Always a process. */
  readonly program?: readonly string[];
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly input?: string | Buffer;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
};

export type Outcome = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a command until it exits. */
export async function vault(args: readonly string[], launch: Launch = {}): Promise<Outcome> {
  return needsProcess(args, launch) ? runOutside(args, launch) : runInside(args, launch);
}

/** Serve, or tell what is in the executable. */
const processCommands: readonly string[] = [
  ...['serve', 'demo', 'systemd-unit', 'completion', 'man', 'licenses', 'version', '--version'],
];

/**
 * Whether the command has to be one, or is given what a process has: a folder, a user, variables of the system, a
 * descriptor.
 */
function needsProcess(
  args: readonly string[],
  { program, cwd, uid, gid, environment = {} }: Launch,
): boolean {
  if (process.env.VAULT_TEST_WHOLE === '1') return true;
  if ([program, cwd, uid, gid].some((one) => one !== undefined)) return true;
  if (processCommands.includes(args[0] ?? '') || args.includes('-')) return true;
  return !Object.keys(environment).every((name) => /^(?:CERT)?VAULT_/.test(name));
}

/** Runs a command in this process, through the entry point of the executable. */
export async function runInside(
  args: readonly string[],
  {
    input,
    environment,
    world = realWorld,
  }: Pick<Launch, 'input' | 'environment'> & { readonly world?: World } = {},
): Promise<Outcome> {
  // Most tests that start a server run no command in their process.
  const { run } = await import('../../../src/cli/commands/run.ts');
  const written = { stdout: '', stderr: '' };
  const keptAs = (name: keyof typeof written) =>
    new Writable({
      decodeStrings: false,
      write: (chunk, _, done) => {
        written[name] += String(chunk);
        done();
      },
    });
  const streams = {
    stdin: Readable.from(input === undefined ? [] : [Buffer.from(input)]),
    stdout: keptAs('stdout'),
    stderr: keptAs('stderr'),
  };
  const terminal = {
    ...streams,
    world,
    environment: variables(environment),
    version: manifest.version,
    executable: fromExecutable[0],
  } as unknown as Terminal;
  return { code: await run(args, terminal), ...written };
}

async function runOutside(args: readonly string[], launch: Launch): Promise<Outcome> {
  const child = start(args, launch);
  child.stdin.on('error', () => {
    // A command that rejects its options exits without reading its input.
  });
  child.stdin.end(launch.input ?? '');
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: code as number | null, stdout, stderr };
}

export type RunningVault = {
  readonly url: string;
  readonly pid: number;
  /** Its stderr so far. */
  readonly log: () => string;
  /** Sends a signal and waits for the exit. */
  readonly end: (signal?: NodeJS.Signals) => Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
};

/**
 * Starts `vault serve`, by default on a free loopback port, and waits until it listens. It stops when the test ends.
 */
export async function serve(
  t: Pick<TestContext, 'after'>,
  dataDir: string,
  launch: Launch & { readonly args?: readonly string[]; readonly listen?: string } = {},
): Promise<RunningVault> {
  const { listen = '127.0.0.1:0', args: more = [] } = launch;
  const args = ['serve', '--data-dir', dataDir, '--listen', listen, ...more];
  const child = start(args, launch);
  child.stdin.end();
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const end = async (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    const [code, by] = await ended;
    return { code, signal: by };
  };
  t.after(() => end('SIGKILL'));
  const url = await listeningUrl(child.stdout).catch(async () => {
    const [code, signal] = await ended;
    throw new Error(`vault serve exited with ${code ?? signal}: ${log}`);
  });
  return { url, pid: child.pid ?? 0, log: () => log, end };
}

function start(args: readonly string[], launch: Launch): ChildProcessByStdio<Writable, Readable, Readable> {
  const [named = '', ...first] = launch.program ?? fromExecutable;
  const program = launch.uid === undefined ? named : enterable(named);
  return spawn(program, [...first, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: variables(launch.environment),
    ...(launch.cwd !== undefined && { cwd: launch.cwd }),
    ...(launch.uid !== undefined && { uid: launch.uid }),
    ...(launch.gid !== undefined && { gid: launch.gid }),
  });
}

function variables(given: Launch['environment']): NodeJS.ProcessEnv {
  const { VAULT_DATA_DIR: _, ...inherited } = process.env;
  // The CAs, name servers and receivers of tests are on loopback.
  return { ...inherited, VAULT_ALLOW_OUTBOUND: loopbackSetting, ...given };
}

const copies = new Map<string, string>();

/** A copy of a program where every user can start it: the clone may be below a folder that only its owner can enter. */
export function enterable(program: string): string {
  const known = copies.get(program);
  if (known !== undefined) return known;
  const dir = mkdtempSync(join(tmpdir(), 'vault-program-'));
  chmodSync(dir, 0o755);
  const copy = join(dir, basename(program));
  copyFileSync(program, copy, constants.COPYFILE_FICLONE);
  chmodSync(copy, 0o755);
  copies.set(program, copy);
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  return copy;
}

async function listeningUrl(stdout: Readable): Promise<string> {
  let seen = '';
  for await (const chunk of stdout.setEncoding('utf8') as AsyncIterable<string>) {
    seen += chunk;
    const url = /^listening on (\S+)\n/m.exec(seen)?.[1];
    if (url !== undefined) {
      stdout.resume();
      return url;
    }
  }
  throw new Error(`no "listening on URL" in: ${seen}`);
}

async function text(stream: Readable): Promise<string> {
  let all = '';
  for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) all += chunk;
  return all;
}
