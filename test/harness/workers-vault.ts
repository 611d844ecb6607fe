/** A vault with several worker processes, and ways to reach each of them, because the system picks one per connection. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { patience } from './eventually.ts';
import { tempDir } from './temp-dir.ts';
import { type RunningVault, serve, vault } from './vault-process.ts';

export type WorkersVault = {
  readonly dir: string;
  readonly server: RunningVault;
  /** An API key with all scopes for all certificates. */
  readonly key: string;
  /** Runs a command, which must succeed, and returns its output. */
  readonly done: (...args: readonly string[]) => Promise<string>;
  readonly query: <T>(sql: string) => T[];
};

const allScopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'];

/** Starts the vault with a certificate `web`. It stops when the test ends. */
export async function workersVault(
  t: TestContext,
  { workers = 2, args = [] }: { readonly workers?: number; readonly args?: readonly string[] } = {},
): Promise<WorkersVault> {
  const dir = join(tempDir(t), 'data');
  const done = async (...words: readonly string[]) => {
    const outcome = await vault([...words, '--data-dir', dir]);
    assert.equal(outcome.code, 0, outcome.stderr);
    return outcome.stdout.trim();
  };
  await done('certificate', 'create', '--name=web', '--domain=a.test', '--key-type', 'ec256');
  const scopes = allScopes.map((scope) => `--scope=${scope}`);
  const key = await done('api-key', 'create', '--name=client', ...scopes, '--certificate=*');
  const server = await serve(t, dir, { args: ['--workers', String(workers), ...args] });
  const query = <T>(sql: string): T[] => {
    const database = new BetterSqlite3(join(dir, 'vault.db'), { readonly: true });
    try {
      return database.prepare<[], T>(sql).all();
    } finally {
      database.close();
    }
  };
  return { dir, server, key, done, query };
}

/** The child processes of `pid`. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid);
}

function parentOf(pid: number): number | undefined {
  try {
    return Number(/\) \S+ (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    // It has exited meanwhile.
    return undefined;
  }
}

export type Answer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
  /** The process that responded, identified by the prefix of its request ids. */
  readonly worker: string;
};

/** Sends one request over a new connection or those of an agent. */
export function ask(
  url: string,
  options: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly agent?: Agent;
  } = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const { agent = false, body, ...rest } = options;
  const request = httpRequest(url, { ...rest, agent }, async (response) => {
    try {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      const { statusCode: status = 0, headers } = response;
      resolve({ status, headers, body: text, worker: String(headers['x-request-id']).split('-')[0] ?? '' });
    } catch (error) {
      reject(error);
    }
  });
  request.on('error', reject).end(body);
  return promise;
}

/** A persistent connection to each of the workers. */
export async function agentsToAll(t: TestContext, url: string, workers: number): Promise<Agent[]> {
  const agents = new Map<string, Agent>();
  const all: Agent[] = [];
  t.after(() => {
    for (const agent of all) agent.destroy();
  });
  const deadline = Date.now() + patience;
  while (agents.size < workers) {
    assert.ok(Date.now() < deadline, `connections go to ${agents.size} workers only`);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    all.push(agent);
    // A worker that was just killed resets its pending connections.
    const answer = await ask(`${url}/api/v1/health`, { agent }).catch(() => undefined);
    if (answer === undefined) continue;
    const { worker } = answer;
    if (agents.has(worker)) agent.destroy();
    else agents.set(worker, agent);
  }
  return [...agents.values()];
}
