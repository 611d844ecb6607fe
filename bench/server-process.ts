/** A server process under measurement, on its own core, with its use of memory and processor time. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { availableParallelism, devNull } from 'node:os';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** MB: resident memory (VmRSS), and the part that is not backed by the file of the program (RssAnon). */
export type Memory = { readonly resident: number; readonly own: number };

export type ServerProcess = {
  readonly url: string;
  /** Milliseconds from the start until it listens. */
  readonly listening: number;
  /** Milliseconds of processor time so far; NaN if the system does not report it. */
  readonly processorTime: () => number;
  readonly memory: () => Memory;
  readonly stop: () => Promise<void>;
};

/** The cores of the server and of the load. */
export const serverCore = 0;
export const loadCore = 1;

/** Whether processes can be kept on one core, with another left for the load. */
export const canPin = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0;

/** The command, pinned to this core if possible. */
export function pinned(core: number, command: readonly string[]): string[] {
  return canPin ? ['taskset', '--cpu-list', String(core), ...command] : [...command];
}

/** Moves this process off the server's core until the returned function is called. */
export function leaveServerCore(): () => void {
  const stayOn = (cores: string) =>
    void (canPin && spawnSync('taskset', ['--cpu-list', '--pid', cores, String(process.pid)]));
  stayOn(String(loadCore));
  return () => stayOn(`0-${availableParallelism() - 1}`);
}

/** Starts a command that prints `listening on URL`. Its stderr goes to the file `log`. */
export async function startServer(
  command: readonly string[],
  { log = devNull, core }: { readonly log?: string; readonly core?: number } = {},
): Promise<ServerProcess> {
  const started = performance.now();
  const [program = '', ...args] = core === undefined ? command : pinned(core, command);
  const stderr = openSync(log, 'a');
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', stderr] });
  closeSync(stderr);
  const ended = once(server, 'exit');
  const stop = async () => {
    server.kill();
    await ended;
  };
  try {
    const url = await listeningUrl(server.stdout);
    return {
      url,
      listening: performance.now() - started,
      processorTime: () => processorTime(server.pid),
      memory: () => memory(server.pid),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listeningUrl(stdout: Readable | null): Promise<string> {
  for await (const line of createInterface(stdout as Readable)) {
    const url = /^listening on (\S+)$/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error('the server exited before it listened');
}

/** utime and stime (proc(5)), in ticks of 10 ms; the name before them may contain spaces. */
function processorTime(pid: number | undefined): number {
  if (process.platform !== 'linux') return Number.NaN;
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

function memory(pid: number | undefined): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = (field: string) => {
    const kilobytes = new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1];
    return (Number(kilobytes) * 1024) / 1e6;
  };
  return { resident: megabytes('VmRSS'), own: megabytes('RssAnon') };
}
