/**
 * The cost of a start: the time until a command finishes and until a server listens, and the memory and disk space of
 * an idle server.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Figure, median } from './figure.ts';
import type { Pace } from './pace.ts';
import { type Memory, type ServerProcess, startServer } from './server-process.ts';

const rounds = 10;

/** Measures the executable at `program`; medians of ten rounds, in a new vault. */
export async function measureStart(program: string, { turn }: Pace): Promise<Figure[]> {
  const data = mkdtempSync(join(tmpdir(), 'vault-bench-'));
  try {
    run(program, ['certificate', 'create', '--name', 'a', '--domain', 'a.test', '--data-dir', data]);
    const create = ['api-key', 'create', '--scope', 'certificates:read', '--certificate', '*'];
    const versions: number[] = [];
    const created: number[] = [];
    const served: ServerFigures[] = [];
    for (let round = 0; round < rounds; round++) {
      await turn();
      versions.push(run(program, ['--version']));
      created.push(run(program, [...create, '--name', `n${round}`, '--data-dir', data]));
      served.push(await serveOnce(program, data));
    }
    return [
      { name: 'vault --version', value: median(versions), unit: 'ms' },
      { name: 'vault api-key create', value: median(created), unit: 'ms' },
      {
        name: 'vault serve until it listens',
        value: median(served.map(({ listening }) => listening)),
        unit: 'ms',
      },
      {
        name: 'memory of the idle server',
        value: median(served.map(({ idle }) => idle.resident)),
        unit: 'MB',
      },
      {
        name: 'memory after one request',
        value: median(served.map(({ asked }) => asked.resident)),
        unit: 'MB',
      },
      {
        name: 'without file-backed pages',
        value: median(served.map(({ asked }) => asked.own)),
        unit: 'MB',
      },
      { name: 'size of the executable', value: statSync(program).size / 1e6, unit: 'MB' },
    ];
  } finally {
    rmSync(data, { recursive: true });
  }
}

/** Milliseconds until the command exits. */
function run(program: string, args: string[]): number {
  const started = performance.now();
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`vault ${args.join(' ')} failed: ${stderr}`);
  return performance.now() - started;
}

type ServerFigures = {
  /** Milliseconds from the start until it listens. */
  readonly listening: number;
  /** Memory before and after the first request. */
  readonly idle: Memory;
  readonly asked: Memory;
};

async function serveOnce(program: string, data: string): Promise<ServerFigures> {
  const server = await startServer([program, 'serve', '--data-dir', data, '--listen', '127.0.0.1:0']);
  try {
    const idle = await quietMemory(server);
    const { status } = await fetch(`${server.url}/api/v1/health`, { headers: { connection: 'close' } });
    if (status !== 200) throw new Error(`health responded with status ${status}`);
    return { listening: server.listening, idle, asked: await quietMemory(server) };
  } finally {
    await server.stop();
  }
}

/** Memory once the process has used no processor time for half a second. */
async function quietMemory(server: ServerProcess): Promise<Memory> {
  let before = -1;
  for (;;) {
    const used = server.processorTime();
    if (used === before) return server.memory();
    before = used;
    await delay(500);
  }
}
