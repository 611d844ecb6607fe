/**
 * The gain of a second worker: requests per second with two workers as a multiple of those with one, in the same run. On a
 * machine with two processors, the load takes a share of the second one.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Figure, median } from './figure.ts';
import { load } from './load.ts';
import type { Pace } from './pace.ts';

const rounds = 3;
const seconds = 3;

const requests = [
  { name: 'certificate metadata', path: '' },
  { name: '304 of a full chain', path: '/fullchain.pem', isKnown: true },
  { name: 'full chain, audited', path: '/fullchain.pem' },
  { name: 'private key, audited', path: '/private.key' },
] as const;

/** Measures the executable at `program` in a new vault; medians of three rounds. */
export async function measureWorkers(program: string, { turn }: Pace): Promise<Figure[]> {
  const data = mkdtempSync(join(tmpdir(), 'vault-bench-'));
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, [...args, '--data-dir', data], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    return stdout.trim();
  };
  try {
    run('certificate', 'create', '--name', 'web', '--domain', 'a.test');
    const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
    const key = run('api-key', 'create', '--name', 'bench', ...scopes, '--certificate', '*');
    const found = new Map<string, number[]>();
    for (let round = 0; round < rounds; round++) {
      await turn();
      const one = await measureOnce(program, data, key, 1);
      const two = await measureOnce(program, data, key, 2);
      for (const { name } of requests) {
        found.set(name, [...(found.get(name) ?? []), (two.get(name) ?? 0) / (one.get(name) ?? 1)]);
      }
    }
    return [...found].map(([name, ratios]) => ({ name, value: median(ratios), unit: 'times' }));
  } finally {
    rmSync(data, { recursive: true });
  }
}

/** Requests per second by name. */
async function measureOnce(
  program: string,
  data: string,
  key: string,
  workers: number,
): Promise<Map<string, number>> {
  const args = [
    'serve',
    '--data-dir',
    data,
    '--listen',
    '127.0.0.1:0',
    '--api-key-rate',
    '0',
    '--log-level',
    'error',
  ];
  const server = spawn(program, [...args, '--workers', String(workers)], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  try {
    const [line] = await once(createInterface(server.stdout), 'line');
    const url = `${String(line).replace('listening on ', '')}/api/v1/certificates/web`;
    const headers: Record<string, string> = { Authorization: `Bearer ${key}` };
    const { headers: given } = await fetch(`${url}/fullchain.pem`, { headers });
    const results = new Map<string, number>();
    for (const request of requests) {
      const tag = given.get('etag') ?? '';
      const known = 'isKnown' in request ? { 'If-None-Match': tag } : {};
      const plan = {
        url,
        requests: [{ path: new URL(url).pathname + request.path, headers: { ...headers, ...known } }],
      };
      await load({ ...plan, seconds: 1 });
      results.set(request.name, (await load({ ...plan, seconds })).perSecond);
    }
    return results;
  } finally {
    server.kill();
    await once(server, 'close');
  }
}
