/**
 * What a second worker gains: requests per second with two workers as a multiple of those with one, in the same run, with
 * wrk (or autocannon) beside them on the same processors. On two processors the load takes a part of both.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Figure, median } from './figure.ts';

const rounds = 3;
const seconds = 3;
const connections = 32;

const requests = [
  { name: 'certificate metadata', path: '' },
  { name: '304 of a full chain', path: '/fullchain.pem', isKnown: true },
  { name: 'full chain, audited', path: '/fullchain.pem' },
  { name: 'private key, audited', path: '/private.key' },
] as const;

/** Measures the executable at `program` in a vault of its own; medians of three rounds. */
export async function measureWorkers(program: string): Promise<Figure[]> {
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

/** Requests per second by their names. */
async function measureOnce(
  program: string,
  data: string,
  key: string,
  workers: number,
): Promise<Map<string, number>> {
  const args = ['serve', '--data-dir', data, '--listen', '127.0.0.1:0', '--log-level', 'error'];
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
      await load(url + request.path, { ...headers, ...known }, 1);
      results.set(request.name, await load(url + request.path, { ...headers, ...known }, seconds));
    }
    return results;
  } finally {
    server.kill();
    await once(server, 'close');
  }
}

const autocannon = join(import.meta.dirname, '..', 'node_modules', '.bin', 'autocannon');

async function load(url: string, headers: Record<string, string>, duration: number): Promise<number> {
  const options = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const wrk = await said('wrk', ['-t1', `-c${connections}`, `-d${duration}s`, ...options, url]);
  if (wrk === undefined) {
    const text = await said(autocannon, ['-j', '-c', `${connections}`, '-d', `${duration}`, ...options, url]);
    return JSON.parse(text ?? '{}').requests.average;
  }
  if (/Non-2xx or 3xx|Socket errors/.test(wrk)) throw new Error(wrk);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(wrk)?.[1]);
}

/** What the program prints; undefined where there is none of this name. */
async function said(program: string, args: readonly string[]): Promise<string | undefined> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const isThere = once(child, 'spawn').then(
    () => true,
    () => false,
  );
  if (!(await isThere)) return undefined;
  let text = '';
  for await (const chunk of child.stdout) text += chunk;
  return text;
}
