/** A server process under measurement, on its own core, with its use of memory and processor time. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { availableParallelism, devNull } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** MB: resident memory (VmRSS), and the part that is not backed by the file of the program (RssAnon). */
export type Memory = { readonly resident: number; readonly own: number };

export type RunningProcess = {
  /** Milliseconds of processor time so far; NaN if the system does not report it. */
  readonly processorTime: () => number;
  /** Of these, those of the main thread, which runs the event loop. */
  readonly loopTime: () => number;
  readonly memory: () => Memory;
  readonly stop: () => Promise<void>;
};

export type ServerProcess = RunningProcess & {
  readonly url: string;
  /** Milliseconds from the start until it listens. */
  readonly listening: number;
};

/** One core, or a list for taskset. */
export type Cores = number | string;

/** The cores of the server and of the load, and those that they share where both may use two. */
export const serverCore = 0;
export const loadCore = 1;
export const bothCores = `${serverCore},${loadCore}`;

/** Whether processes can be kept on one core, with another left for the load. */
export const canPin = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;

/** The command, pinned to these cores if possible. */
export function pinned(cores: Cores, command: readonly string[]): string[] {
  return canPin ? ['taskset', '--cpu-list', String(cores), ...command] : [...command];
}

/** Moves this process off the server's core until the returned function is called. */
export function leaveServerCore(): () => void {
  const stayOn = (cores: string) =>
    void (canPin && spawnSync('taskset', ['--cpu-list', '--pid', cores, String(process.pid)]));
  stayOn(String(loadCore));
  return () => stayOn(`0-${availableParallelism() - 1}`);
}

type ServerOptions = {
  /** The file for its stderr; discarded by default. */
  readonly log?: string;
  /** Not pinned by default. */
  readonly cores?: Cores;
  /** Variables in addition to those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
};

/** The command line that serves this vault on a free port, without a limit of requests per key. */
export function serveCommand(program: string, dataDir: string): string[] {
  return [program, 'serve', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--api-key-rate', '0'];
}

/** Starts a command that prints `listening on URL`. Its stderr goes to the file `log`. */
export async function startServer(
  command: readonly string[],
  options: ServerOptions = {},
): Promise<ServerProcess> {
  const started = performance.now();
  const { log = devNull } = options;
  const { stdout, ...server } = startProcess(command, options);
  try {
    const url = await listeningUrl(stdout);
    return { ...server, url, listening: performance.now() - started };
  } catch (error) {
    await server.stop();
    const said = log === devNull ? '' : (readFileSync(log, 'utf8').trim().split('\n').at(-1) ?? '');
    throw new Error(`${command[0]} did not start: ${said}`, { cause: error });
  }
}

/** Starts any command. Its stderr goes to the file `log`. */
export function startProcess(
  command: readonly string[],
  { log = devNull, cores, environment }: ServerOptions = {},
): RunningProcess & { readonly stdout: Readable | null } {
  const [program = '', ...args] = cores === undefined ? command : pinned(cores, command);
  const stderr = openSync(log, 'a');
  const server = spawn(program, args, {
    stdio: ['ignore', 'pipe', stderr],
    env: { ...process.env, ...environment },
  });
  closeSync(stderr);
  const ended = once(server, 'exit');
  return {
    stdout: server.stdout,
    processorTime: () => processorTime(`/proc/${server.pid}/stat`),
    loopTime: () => processorTime(`/proc/${server.pid}/task/${server.pid}/stat`),
    memory: () => memory(server.pid),
    stop: async () => {
      server.kill();
      await ended;
    },
  };
}

async function listeningUrl(stdout: Readable | null): Promise<string> {
  for await (const line of createInterface(stdout as Readable)) {
    const url = /^listening on (\S+)$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the server exited before it listened');
}

/**
 * Milliseconds of processor time in a stat file of /proc: utime and stime (proc(5)), in ticks of 10 ms, and with
 * `withEnded` those of its children that have ended. The name before them may contain spaces.
 */
export function processorTime(file: string, { withEnded = false } = {}): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(file, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const ticks = fields.slice(11, withEnded ? 15 : 13).map(Number);
  return ticks.reduce((sum, each) => sum + each, 0) * 10;
}

function memory(pid: number | undefined): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (field: string) => {
    const kilobytes = new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1];
    return (Number(kilobytes) * 1024) / 1e6;
  };
  return { resident: megabytes('VmRSS'), own: megabytes('RssAnon') };
}
