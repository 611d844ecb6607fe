/** The executable for the chambers: a server and commands that may be killed at any moment, and requests. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { patience } from '../harness/eventually.ts';
import '../harness/processes/child-processes.ts';

export type Place = {
  readonly program: string;
  readonly data: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Where its server listens; without it, on a free port. */
  readonly listen?: string;
};

export type Server = {
  readonly url: string;
  readonly pid: number;
  readonly kill: (signal?: NodeJS.Signals) => Promise<string>;
};

export type Started = {
  /**
   * Resolves when the server listens, or to undefined if it was killed before. Rejects with its output if it exited.
   */
  readonly listening: Promise<Server | undefined>;
  /** Stops it and returns how it exited. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<string>;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<string>;
  /** Its stderr. */
  readonly log: () => string;
};

/** Starts `vault serve`. */
export function startServer(
  { program, data, environment, listen = '127.0.0.1:0' }: Place,
  more: readonly string[] = [],
): Started {
  const args = [
    'serve',
    '--data-dir',
    data,
    '--listen',
    listen,
    '--api-key-rate',
    '0',
    '--log-level',
    'warn',
    ...more,
  ];
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...withoutVault(process.env), ...environment },
  });
  let log = '';
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    log += chunk;
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  let isKilled = false;
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    isKilled = true;
    child.kill(signal);
    const [code, by] = await ended;
    return String(by ?? code);
  };
  const { promise: listening, resolve, reject } = Promise.withResolvers<Server | undefined>();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    said += chunk;
    const url = /^listening on (\S+)\n/m.exec(said)?.[1];
    if (url !== undefined) resolve({ url, pid: child.pid ?? 0, kill });
  });
  ended.then(([code, by]) => {
    if (isKilled) resolve(undefined);
    else reject(new Error(`vault serve exited (${by ?? code}): ${log}`));
  }, reject);
  return { listening, kill, ended: ended.then(([code, by]) => String(by ?? code)), log: () => log };
}

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** Runs a command until it exits, or kills it after some milliseconds; then its code is null. */
export async function runCommand(
  { program, data, environment }: Place,
  args: readonly string[],
  { input = '', killAfter }: { readonly input?: string; readonly killAfter?: number | undefined } = {},
): Promise<Ran> {
  const child = spawn(program, [...args, '--data-dir', data], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...withoutVault(process.env), ...environment },
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  child.stdin.on('error', () => {
    // It exited without reading its input.
  });
  child.stdin.end(input);
  const timer = killAfter === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfter);
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, stdout, stderr };
}

export type Answer = {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
};

export type Question = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly agent?: http.Agent;
  /** Called with status and headers before the body arrives, because they already count as a response. */
  readonly answered?: (answer: Omit<Answer, 'body'>) => void;
};

/** Sends one request. Rejects if the connection breaks. */
export async function ask(url: string, { body, answered, ...init }: Question = {}): Promise<Answer> {
  const sent = http.request(url, {
    ...init,
    headers: { ...init.headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
    timeout: patience,
  });
  sent.on('timeout', () =>
    sent.destroy(new Error(`no response within a minute: ${init.method ?? 'GET'} ${url}`)),
  );
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [reply] = (await once(sent, 'response')) as [http.IncomingMessage];
  const { statusCode: status = 0, headers } = reply;
  answered?.({ status, headers });
  let text = '';
  for await (const chunk of reply.setEncoding('utf8')) text += chunk;
  return { status, headers, body: text };
}

/** Waits until the vault is ready. */
export async function untilReady(url: string): Promise<void> {
  const deadline = performance.now() + patience;
  for (;;) {
    const { status, body } = await ask(`${url}/api/v1/ready`);
    if (status === 200) return;
    if (performance.now() > deadline) throw new Error(`not ready after a minute: ${body}`);
    await delay(20);
  }
}

function withoutVault(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('VAULT_')));
}
