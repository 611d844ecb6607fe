/**
 * Runs hook programs: with an argument list, a small environment and a deadline, and kills their whole process group.
 */
import { type StdioOptions, spawn } from 'node:child_process';
import { type Deadline, withDeadline } from '../base/deadline.ts';
import { second } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import { type HookRefusal, hookRefusal } from './hook-trust.ts';

export type HookRun = {
  /** An absolute path. */
  readonly program: string;
  readonly args: readonly string[];
  /** Files that the program reads as code: other users must not be able to change them either. */
  readonly scripts?: readonly string[];
  /** The opened program, which then runs even if the path leads to another file by now. Needs /proc. */
  readonly descriptor?: number | undefined;
  /** Environment variables in addition to PATH, HOME and LANG of this process. */
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Standard input; none if undefined. */
  readonly input?: string;
  /** Receives the standard output as it arrives, so that secrets are not kept in `HookEnd`. */
  readonly takeOutput?: (chunk: Buffer) => void;
};

/** How the program ended. If `started` is false, `code` is the error code of the system, such as `ENOENT`. */
export type HookEnd =
  | HookRefusal
  | {
      readonly started: true;
      /** Undefined if a signal killed it. */
      readonly exitCode: number | undefined;
      /** The signal that killed it, sent by the vault or by another process. */
      readonly killedBy: string | undefined;
      /** Why the vault stopped it, if it did. */
      readonly stopped: 'timeout' | 'aborted' | undefined;
      /** The last 4 KiB of each. */
      readonly stdout: string;
      readonly stderr: string;
    };

const keptOutput = 4096;
const graceToEnd = 2 * second;
/** A daemon that a hook leaves running keeps its output open; the output of the hook itself has arrived by then. */
const graceForOutput = second;

/**
 * Runs the program until it exits, unless other users can change it. A script without a `#!` line is run by sh, as
 * execvp does; arguments are passed unchanged. On timeout and abort, its process group gets SIGTERM, and SIGKILL 2
 * seconds later.
 */
export async function runHook(
  world: Pick<World, 'sleep'>,
  run: HookRun,
  signal: AbortSignal,
): Promise<HookEnd> {
  return (
    (await hookRefusal(run.program, run.scripts)) ??
    withDeadline(world, run.timeoutMs, signal, (deadline) => runUntil(world, run, deadline))
  );
}

async function runUntil(world: Pick<World, 'sleep'>, run: HookRun, deadline: Deadline): Promise<HookEnd> {
  const child = started(run);
  if (child instanceof Error) return notStarted(child);
  give(child.stdin, run.input);
  const stdout = run.takeOutput === undefined ? tail(child.stdout) : handed(child.stdout, run.takeOutput);
  const stderr = tail(child.stderr);
  const closed = new AbortController();
  child.once('close', () => closed.abort());
  type Exit = readonly [exitCode: number | null, killedBy: string | null];
  const ended = Promise.withResolvers<Exit | Error>();
  const exited = new AbortController();
  child.once('error', (error) => ended.resolve(error));
  child.once('exit', (...exit) => {
    exited.abort();
    ended.resolve(exit);
  });
  const { pid } = child;
  let stopped: ReturnType<Deadline['ended']>;
  let killing = Promise.resolve();
  const stop = () => {
    stopped = deadline.ended();
    killing = killGroup(world, pid, exited.signal);
  };
  deadline.signal.addEventListener('abort', stop, { once: true });
  if (deadline.signal.aborted) stop();
  const end = await ended.promise;
  deadline.signal.removeEventListener('abort', stop);
  await killing;
  if (end instanceof Error) return notStarted(end);
  await world.sleep(graceForOutput, closed.signal);
  for (const stream of [child.stdout, child.stderr]) stream?.destroy();
  const [exitCode, killedBy] = end;
  return {
    started: true,
    exitCode: exitCode ?? undefined,
    killedBy: killedBy ?? undefined,
    ...{ stopped, stdout: stdout(), stderr: stderr() },
  };
}

function started({ program, args, environment, input, descriptor }: HookRun) {
  const stdio: StdioOptions = [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'];
  try {
    return spawn(descriptor === undefined ? program : '/proc/self/fd/3', args, {
      argv0: program,
      cwd: '/',
      // A separate process group, so that child processes are killed as well.
      detached: true,
      env: { ...inherited(), ...environment },
      stdio: descriptor === undefined ? stdio : [...stdio, descriptor],
    });
  } catch (error) {
    // Node throws errors with unusual codes instead of emitting an event.
    return error as Error;
  }
}

function notStarted(error: NodeJS.ErrnoException): HookEnd {
  return { started: false, code: error.code ?? error.message };
}

function inherited(): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG } = process.env;
  return { ...(PATH && { PATH }), ...(HOME && { HOME }), ...(LANG && { LANG }) };
}

async function killGroup(
  world: Pick<World, 'sleep'>,
  pid: number | undefined,
  exited: AbortSignal,
): Promise<void> {
  if (pid === undefined) return;
  signalGroup(pid, 'SIGTERM');
  await world.sleep(graceToEnd, exited);
  // Even if the group leader has exited, other members may still run.
  signalGroup(pid, 'SIGKILL');
}

function signalGroup(pid: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, name);
  } catch {
    // The process group no longer exists.
  }
}

/** Writes to the standard input of the program, which may ignore it. */
function give(stdin: NodeJS.WritableStream | null | undefined, input: string | undefined): void {
  stdin?.on('error', () => {
    // The program exited or closed its input before it read everything.
  });
  if (input !== undefined) stdin?.end(input);
}

function handed(
  stream: NodeJS.ReadableStream | null | undefined,
  take: (chunk: Buffer) => void,
): () => string {
  stream?.on('data', take);
  return () => '';
}

/** Collects the end of a stream. The stream is missing if the process could not get a pipe for it (EMFILE). */
function tail(stream: NodeJS.ReadableStream | null | undefined): () => string {
  let kept = Buffer.alloc(0);
  stream?.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-keptOutput);
  });
  return () => kept.toString();
}
