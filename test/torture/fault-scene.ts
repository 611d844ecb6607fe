/**
 * A vault during a fault and its users: clients that download, poll and use invalid keys, and commands that create
 * keys. Every response is checked against what the vault may answer during a fault.
 */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { patience } from '../harness/eventually.ts';
import { type Launch, type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';

export type Scene = {
  /** A folder that the fault does not affect. */
  readonly scratch: string;
  /** The folder of the vault, which the fault affects. */
  readonly root: string;
  readonly dataDir: string;
  readonly launch: Launch;
  readonly server: RunningVault;
  readonly key: string;
  readonly revoked: string;
};

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };

/** The count of each response by request. */
export type Tally = Map<string, number>;

/** Additional results that a fault may cause. */
export type Leave = {
  /** Connections may be closed or refused without a response. */
  readonly drops?: boolean;
  /** Downloads may fail or succeed. */
  readonly mayRefuse?: boolean;
};

const unknownKey = `vk_${'a'.repeat(12)}.${'b'.repeat(43)}`;

/** A vault with the certificate `web`, a valid key and a revoked one, served by the executable. */
export async function openScene(
  t: Pick<TestContext, 'after'>,
  scratch: string,
  launchFor: (root: string) => Launch = () => ({}),
): Promise<Scene> {
  const root = join(scratch, 'disk');
  mkdirSync(root, { mode: 0o700, recursive: true });
  const dataDir = join(root, 'data');
  const launch = launchFor(root);
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', dataDir], launch);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await run('certificate', 'create', '--name=web', '--domain=web.test');
  const rights = ['--scope=certificates:read', '--scope=private_keys:read', '--certificate=*'];
  const key = await run('api-key', 'create', '--name=client', ...rights);
  const revoked = await run('api-key', 'create', '--name=thief', ...rights);
  await run('api-key', 'revoke', '--id=2');
  const server = await serve(t, dataDir, { ...launch, args: ['--log-level=error', '--api-key-rate=0'] });
  return { scratch, root, dataDir, launch, server, key, revoked };
}

/** Sends requests and runs commands until `until` returns true, and counts the results. */
export async function live(
  { server: { url }, key, revoked }: Scene,
  tally: Tally,
  until: () => boolean,
  { drops = false }: Leave = {},
): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const path = '/api/v1/certificates/web';
  let etag = '"none"';
  const questions: Record<string, () => Promise<void>> = {
    download: () =>
      ask('download', `${path}/private.key`, { key }, [200, 503], ({ status, headers, body }) => {
        if (status !== 200) return;
        assert.match(body, /^-----BEGIN PRIVATE KEY-----\n[\s\S]+-----END PRIVATE KEY-----\n$/);
        assert.equal(Buffer.byteLength(body), Number(headers['content-length']));
        etag = String(headers.etag);
      }),
    poll: () => {
      const sent = etag;
      return ask(
        'poll',
        `${path}/private.key`,
        { key, etag: sent },
        [200, 304, 503],
        ({ status, headers }) => {
          if (status === 304) assert.equal(headers.etag, sent);
        },
      );
    },
    chain: () => ask('chain', `${path}/fullchain.crt`, { key }, [200, 503]),
    metadata: () => ask('metadata', path, { key }, [200, 503]),
    // Too many of these get 429, which is also a rejection.
    revoked: () => ask('revoked', `${path}/private.key`, { key: revoked }, [401, 429, 503]),
    unknown: () => ask('unknown', `${path}/private.key`, { key: unknownKey }, [401, 429, 503]),
    health: () => ask('health', '/api/v1/health', {}, [200]),
    ready: () => ask('ready', '/api/v1/ready', {}, [200, 503]),
  };

  async function ask(
    name: string,
    target: string,
    credentials: { key?: string; etag?: string },
    allowed: readonly number[],
    check: (answer: Answer) => void = () => undefined,
  ): Promise<void> {
    const answer = await get(agent, `${url}${target}`, credentials);
    const { status, headers, body } = answer;
    const mayBe = drops ? [...allowed, 0] : allowed;
    assert.ok(mayBe.includes(status), `${name} was answered with ${status}: ${body}`);
    if (status === 503 && name !== 'ready') assertUnavailable(answer);
    if (status !== 200) assert.doesNotMatch(body, /PRIVATE KEY|SQLITE|vault\.db|\/tmp/);
    if (status !== 0) assert.ok(headers['x-request-id']);
    check(answer);
    tally.set(`${name} ${status}`, (tally.get(`${name} ${status}`) ?? 0) + 1);
  }

  // A few sequential lanes: a flood would only make queues longer.
  const line = async (offset: number) => {
    const all = Object.values(questions);
    for (let turn = offset; !until(); turn += 1) {
      await all[turn % all.length]?.();
      // Dropped connections would be retried endlessly.
      if (drops) await delay(20);
    }
  };
  try {
    await Promise.all([0, 1, 3, 5].map(line));
  } finally {
    agent.destroy();
  }
}

function assertUnavailable({ headers, body }: Answer): void {
  assert.equal(headers['content-type'], 'application/problem+json');
  assert.ok(Number(headers['retry-after']) > 0, 'Retry-After is missing');
  const problem = JSON.parse(body) as Record<string, unknown>;
  assert.deepEqual([problem.status, problem.code], [503, 'unavailable']);
}

/** Creates a key on the command line. Returns the raw key, or undefined if the command failed as expected. */
export async function tryToMakeKey({ dataDir, launch }: Scene, name: string): Promise<string | undefined> {
  const options = ['--scope=certificates:read', '--certificate=web', '--data-dir', dataDir];
  const { code, stdout, stderr } = await vault(['api-key', 'create', '--name', name, ...options], launch);
  if (code === 0) return stdout.trim();
  assert.equal(stdout, '');
  assert.match(stderr, /^vault: \S.+\n( {2}\S.+\n)*$/, 'not an error with a hint');
  assert.doesNotMatch(stderr, /\n\s+at /);
  return undefined;
}

/** Retries a download until the same process serves it again; throws after ten seconds. */
export async function recovered({ server: { url, log }, key }: Scene): Promise<number> {
  const agent = new Agent();
  const began = performance.now();
  for (;;) {
    const { status, body } = await get(agent, `${url}/api/v1/certificates/web/private.key`, { key });
    const ms = performance.now() - began;
    if (status === 200) return ms;
    assert.ok(ms < 10_000, `it does not recover: ${status} ${body} ${log().slice(-2000)}`);
    await delay(50);
  }
}

/** The number of downloads in the audit log, read from outside; also checks the integrity of the database. */
export function recordedDownloads({ dataDir }: Pick<Scene, 'dataDir'>): number {
  const db = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true });
  try {
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok');
    const sql = "select count(*) from audit_events where action = 'certificate.download'";
    return db.prepare(sql).pluck().get() as number;
  } finally {
    db.close();
  }
}

/** The number of responses with status 200 that download a file. */
export function handedOut(tally: Tally): number {
  return ['download', 'chain', 'poll'].reduce((sum, name) => sum + (tally.get(`${name} 200`) ?? 0), 0);
}

/** Resident memory of the process, in megabytes. */
export function residentMegabytes({ server: { pid } }: Pick<Scene, 'server'>): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Bytes of the write-ahead log. */
export function logBytes({ dataDir }: Pick<Scene, 'dataDir'>): number {
  const path = join(dataDir, 'vault.db-wal');
  return existsSync(path) ? statSync(path).size : 0;
}

/** Status 0 if there was no response. */
export function get(
  agent: Agent,
  url: string,
  { key, etag }: { key?: string; etag?: string } = {},
): Promise<Answer> {
  const headers = {
    ...(key !== undefined && { Authorization: `Bearer ${key}` }),
    ...(etag !== undefined && { 'If-None-Match': etag }),
  };
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const none = (error: Error) => resolve({ status: 0, headers: {}, body: error.message });
  httpRequest(url, { agent, headers, timeout: patience }, (reply) => {
    let body = '';
    reply
      .setEncoding('utf8')
      .on('data', (piece: string) => {
        body += piece;
      })
      .on('error', none)
      .on('end', () => resolve({ status: reply.statusCode ?? 0, headers: reply.headers, body }));
  })
    .on('timeout', function (this: { destroy: (error: Error) => void }) {
      this.destroy(new Error('request timed out'));
    })
    .on('error', none)
    .end();
  return promise;
}
