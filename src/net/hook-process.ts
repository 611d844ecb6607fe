/** Runs the operator's own programs: with an argument list, a small environment, a deadline, and an end for all of it. */
import { spawn } from 'node:child_process';
import { type Deadline, withDeadline } from '../base/deadline.ts';
import { second } from '../base/duration.ts';
import type { World } from '../base/world.ts';

export type HookRun = {
  /** Absolute. */
  readonly program: string;
  readonly args: readonly string[];
  /** What the program gets besides PATH, HOME and LANG of this process. */
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** What it reads on its standard input; nothing where undefined. */
  readonly input?: string;
  /** Takes the standard output as it comes, in place of the end of it in `HookEnd`: for secrets. */
  readonly takeOutput?: (chunk: Buffer) => void;
};

/** How it ended. `started` is false where the program could not be started: `code` is then the system's, as `ENOENT`. */
export type HookEnd =
  | { readonly started: false; readonly code: string }
  | {
      readonly started: true;
      /** Undefined where a signal ended it. */
      readonly exitCode: number | undefined;
      /** The signal that ended it, ours or somebody else's. */
      readonly killedBy: string | undefined;
      /** Why we ended it, where it was us. */
      readonly stopped: 'timeout' | 'aborted' | undefined;
      /** The last 4 KiB of each. */
      readonly stdout: string;
      readonly stderr: string;
    };

const keptOutput = 4096;
const graceToEnd = 2 * second;
/** A daemon that a hook leaves behind holds its output open; what the hook itself said is there by then. */
const graceForOutput = second;

/**
 * Runs the program to its end. A script without a `#!` line is run by sh, as execvp does it; the arguments stay what they
 * are. On timeout and abort its process group gets SIGTERM, and SIGKILL 2 seconds later.
 */
export async function runHook(
  world: Pick<World, 'sleep'>,
  run: HookRun,
  signal: AbortSignal,
): Promise<HookEnd> {
  return withDeadline(world, run.timeoutMs, signal, (deadline) => runUntil(world, run, deadline));
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

function started({ program, args, environment, input }: HookRun) {
  try {
    return spawn(program, args, {
      cwd: '/',
      // A process group of its own, so that what it started ends with it.
      detached: true,
      env: { ...inherited(), ...environment },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    // What the system refuses with other codes than the usual ones is thrown, and not told by an event.
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
  // Also where the first of them has ended: the others may not have heard.
  signalGroup(pid, 'SIGKILL');
}

function signalGroup(pid: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, name);
  } catch {
    // Nobody of the group is left.
  }
}

/** Writes to the program's standard input; a program that does not read it has its reasons. */
function give(stdin: NodeJS.WritableStream | null | undefined, input: string | undefined): void {
  stdin?.on('error', () => {
    // It ended, or closed its input, before it had read everything.
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

/** What a stream ends with. There is none where the process could not even get the pipe for it (EMFILE). */
function tail(stream: NodeJS.ReadableStream | null | undefined): () => string {
  let kept = Buffer.alloc(0);
  stream?.on('data', (chunk: Buffer) => {
    kept = Buffer.concat([kept, chunk]).subarray(-keptOutput);
  });
  return () => kept.toString();
}
