/** Finds free ports on 127.0.0.1, and starts server processes such as Pebble and named on them. */

import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { patience } from '../eventually.ts';
import { tempDir } from '../temp-dir.ts';

/** Below the ephemeral ports. */
const firstPort = 20_000;
const lastPort = 32_000;

/**
 * One file per reserved port. A port stays reserved until the test process that got it ends, even while nothing listens
 * on it.
 */
const reservations = join(tmpdir(), `vault-test-ports-${process.getuid?.() ?? ''}`);
const reserved: string[] = [];

/** A port at 127.0.0.1 that is free for TCP and UDP. */
export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Several of them, all different. */
export async function freePorts(count: number): Promise<number[]> {
  // Holds all ports until the last is found, so that none is found twice.
  const held: (() => Promise<void>)[] = [];
  try {
    const ports: number[] = [];
    while (ports.length < count) {
      const port = randomInt(firstPort, lastPort + 1);
      if (reserve(port) && (await holdTcp(port, held)) && (await holdUdp(port, held))) ports.push(port);
    }
    return ports;
  } finally {
    await Promise.all(held.map((release) => release()));
  }
}

function reserve(port: number): boolean {
  if (reserved.length === 0) forgetTheDead();
  const file = join(reservations, String(port));
  try {
    writeFileSync(file, String(process.pid), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  if (reserved.push(file) === 1) process.once('exit', freeAll);
  return true;
}

function freeAll(): void {
  for (const file of reserved) rmSync(file, { force: true });
}

/** A killed process leaves its files. */
function forgetTheDead(): void {
  mkdirSync(reservations, { recursive: true });
  for (const name of readdirSync(reservations)) {
    const file = join(reservations, name);
    try {
      process.kill(Number(readFileSync(file, 'utf8')), 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') rmSync(file, { force: true });
    }
  }
}

/** How to start a server on given ports. */
export type Launch = {
  readonly program: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether it responds on its ports; called repeatedly with its output so far. */
  readonly isReady: (log: string) => boolean | Promise<boolean>;
};

export type StartedServer = {
  readonly ports: readonly number[];
  readonly pid: number;
  /** Its output on stdout and stderr so far. */
  readonly log: () => string;
};

const attempts = 5;
const portTaken = /address (already )?in use/i;

/**
 * Starts a server on free ports and waits until it responds. Retries on other ports if another program takes one of
 * them. The server runs in a new folder, which `launch` may fill. Both are removed when the test ends.
 */
export async function startOnFreePorts(
  t: Pick<TestContext, 'after'>,
  count: number,
  launch: (ports: readonly number[], dir: string) => Launch | Promise<Launch>,
): Promise<StartedServer> {
  let stop = async () => {
    // Nothing runs yet.
  };
  // Registered before the hook of the folder, because hooks run in order and the server writes to the folder until it
  // exits.
  t.after(() => stop());
  const dir = tempDir(t);
  for (let attempt = 1; ; attempt += 1) {
    const ports = await freePorts(count);
    const launched = await launch(ports, dir);
    const server = run(launched, dir);
    stop = server.stop;
    const problem = await untilReady(launched, server);
    if (problem === undefined) return { ports, pid: server.pid, log: server.log };
    await server.stop();
    if (attempt === attempts || !portTaken.test(server.log())) {
      throw new Error(`${launched.program} ${problem}: ${server.log()}`);
    }
  }
}

type Server = {
  readonly pid: number;
  readonly log: () => string;
  readonly ended: () => boolean;
  readonly stop: () => Promise<void>;
};

function run({ program, args, environment }: Launch, cwd: string): Server {
  const child = spawn(program, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  let log = '';
  let hasEnded = false;
  const ended = new Promise<void>((resolve) => {
    child.once('close', () => {
      hasEnded = true;
      resolve();
    });
  });
  child.on('error', (error) => {
    log += `${error.message}\n`;
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      log += chunk;
    });
  }
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  return { pid: child.pid ?? 0, log: () => log, ended: () => hasEnded, stop };
}

/** Returns the error, or undefined. */
async function untilReady({ isReady }: Launch, server: Server): Promise<string | undefined> {
  const deadline = Date.now() + patience;
  while (Date.now() < deadline) {
    if (server.ended()) return 'ended at once';
    if (portTaken.test(server.log())) return 'found a port taken';
    if (await isReady(server.log())) return undefined;
    await sleep(5);
  }
  return `was not ready after ${patience} ms`;
}

async function holdTcp(port: number, held: (() => Promise<void>)[]): Promise<boolean> {
  const server = createServer().listen({ port, host: '127.0.0.1', exclusive: true });
  try {
    await once(server, 'listening');
    held.push(() => server[Symbol.asyncDispose]());
    return true;
  } catch {
    // Not our own server.
    return false;
  }
}

async function holdUdp(port: number, held: (() => Promise<void>)[]): Promise<boolean> {
  const socket = createSocket('udp4');
  try {
    const bound = once(socket, 'listening');
    socket.bind({ port, address: '127.0.0.1', exclusive: true });
    await bound;
    held.push(() => socket[Symbol.asyncDispose]());
    return true;
  } catch {
    // Not our own server.
    return false;
  }
}
