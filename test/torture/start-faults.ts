/**
 * Starts with a fault: a disk that fails once or from some operation on, missing descriptors, a missing key, or a lock.
 * The executable either serves correct responses or fails with one error message. After the fault it starts normally.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import BetterSqlite3 from 'better-sqlite3';
import type { Chamber, Finding, Order } from './chamber.ts';
import { type DiskFault, type DiskShim, diskShim } from './disk-shim.ts';
import {
  type Answer,
  ask,
  type Place,
  runCommand,
  type Server,
  type Started,
  startServer,
  untilReady,
} from './running-vault.ts';
import { strangeFiles } from './truths.ts';

/** The content of the data directory before the start. */
export const situations = ['nothing', 'a vault', 'a vault that was killed', 'an old vault'] as const;
export type Situation = (typeof situations)[number];

/** A certificate to download, and an API key. */
type Client = { readonly certificate: string; readonly key: string };

/** A fault during a start. */
export type StartTrouble = {
  readonly title: string;
  readonly faults?: readonly DiskFault[];
  /** The limit of open files. */
  readonly descriptors?: number;
  /** A fault without the failing disk: starts it and returns a function that ends it. */
  readonly begin?: (data: string) => () => void;
  /** Whether the fault needs an existing vault. */
  readonly needsVault?: true;
};

export type Tried = 'served' | 'refused';

/** The time limit of a start. */
const longestStart = 40_000;

const withWriteLock = (sql: string) => (data: string) => {
  const database = new BetterSqlite3(join(data, 'vault.db'), { fileMustExist: true });
  database.exec(sql);
  return () => database.close();
};

/** From the first operation on. */
export const startTroubles: readonly StartTrouble[] = [
  { title: 'the disk is full', faults: [{ operation: 'write', error: 'ENOSPC', pattern: '*' }] },
  { title: 'the quota is used up', faults: [{ operation: 'change', error: 'EDQUOT', pattern: '*' }] },
  { title: 'the disk cannot be written', faults: [{ operation: 'write', error: 'EIO', pattern: '*' }] },
  { title: 'nothing can be made durable', faults: [{ operation: 'sync', error: 'EIO', pattern: '*' }] },
  { title: 'nothing can be read', faults: [{ operation: 'read', error: 'EIO', pattern: '*' }] },
  { title: 'the disk is read-only', faults: [{ operation: 'change', error: 'EROFS', pattern: '*' }] },
  { title: 'nothing may be changed', faults: [{ operation: 'change', error: 'EACCES', pattern: '*' }] },
  { title: 'nothing may be opened', faults: [{ operation: 'open', error: 'EMFILE', pattern: '*' }] },
  { title: 'names cannot be changed', faults: [{ operation: 'name', error: 'EIO', pattern: '*' }] },
  {
    title: 'the master key is missing',
    needsVault: true,
    begin: (data) => {
      renameSync(join(data, 'master.key'), `${data}.key`);
      return () => renameSync(`${data}.key`, join(data, 'master.key'));
    },
  },
  {
    title: 'another process holds the write lock',
    needsVault: true,
    begin: withWriteLock('begin immediate'),
  },
  {
    title: 'another process has an exclusive lock on the database',
    needsVault: true,
    begin: withWriteLock(
      'pragma locking_mode = exclusive; begin immediate; select count(*) from audit_events',
    ),
  },
  ...[20, 24, 28, 40].map((descriptors) => ({
    ...{ title: `${descriptors} files may be open`, descriptors },
  })),
];

/** Vaults for failing starts, each created once, on the failing disk. */
export class StartScene {
  readonly #program: string;
  readonly #folder: string;
  readonly #root: string;
  readonly #disk: DiskShim;
  /** Undefined for an empty directory. */
  readonly #templates = new Map<Situation, { readonly folder: string; readonly client: Client }>();
  /** The error messages with their counts. */
  readonly sentences = new Map<string, number>();

  private constructor({ program, folder }: Pick<Order, 'program' | 'folder'>) {
    this.#program = program;
    this.#folder = folder;
    this.#root = join(folder, 'disk');
    mkdirSync(this.#root, { mode: 0o700 });
    this.#disk = diskShim(folder, this.#root);
  }

  static async open(order: Pick<Order, 'program' | 'folder'>): Promise<StartScene> {
    const scene = new StartScene(order);
    await scene.#make('a vault');
    await scene.#make('a vault that was killed');
    scene.#unpackOld();
    return scene;
  }

  /** Starts with a fault, and again after it. Throws if a check fails. */
  async endure(situation: Situation, trouble: StartTrouble): Promise<Tried> {
    const data = join(this.#root, 'data');
    rmSync(this.#root, { recursive: true, force: true });
    mkdirSync(this.#root, { mode: 0o700 });
    const template = this.#templates.get(situation);
    if (template !== undefined) cpSync(template.folder, data, { recursive: true });
    const client = template?.client;
    let downloads = template === undefined ? 0 : downloadsIn(data);
    const begun = this.#begin(trouble, data);
    let tried: Tried = 'refused';
    const started = startServer(begun.place);
    try {
      const server = await this.#soon(started);
      if (server === undefined) this.#refused(await started.ended, started.log());
      else {
        tried = 'served';
        downloads += await askInTrouble(server, client).catch((error: unknown) => {
          // Without a descriptor for a connection, the server closes it.
          if (trouble.descriptors === undefined) throw error;
          return 0;
        });
        begun.end();
        // The limit of a process cannot be lifted later.
        if (trouble.descriptors === undefined) downloads += await recovered(server, client);
        assert.equal(await server.kill('SIGTERM'), '0', started.log());
      }
    } finally {
      begun.end();
      await started.kill();
    }
    if (template !== undefined) {
      const key = readFileSync(join(template.folder, 'master.key'));
      assert.deepEqual(readFileSync(join(data, 'master.key')), key, 'the master key has changed');
    }
    await this.#startsAgain(data, client, downloads);
    return tried;
  }

  #begin({ faults = [], descriptors, begin }: StartTrouble, data: string) {
    const { environment } = this.#disk;
    let program = this.#program;
    if (descriptors !== undefined) {
      program = join(this.#folder, `with-${descriptors}-descriptors`);
      const script = `#!/bin/sh\nunset NODE_EXTRA_CA_CERTS\nulimit -n ${descriptors}\nexec "${this.#program}" "$@"\n`;
      writeFileSync(program, script, { mode: 0o700 });
    }
    this.#disk.fail(...faults);
    let endOther = begin?.(data);
    const end = () => {
      this.#disk.fail();
      endOther?.();
      endOther = undefined;
    };
    return { place: { program, data, environment } satisfies Place, end };
  }

  /** The server, or undefined if it exited. Throws if it neither listens nor exits in time. */
  async #soon({ listening, ended, kill, log }: Started): Promise<Server | undefined> {
    const tooLate = new AbortController();
    const late = delay(longestStart, 'late' as const, { signal: tooLate.signal }).catch(
      () => 'late' as const,
    );
    const first = await Promise.race([listening.catch(() => undefined), ended.then(() => undefined), late]);
    tooLate.abort();
    if (first !== 'late') return first;
    await kill();
    throw new Error(`after ${longestStart / 1000} s it neither serves nor has exited: ${log()}`);
  }

  /** Checks that it printed one error message with a hint and without internals. */
  #refused(code: string, log: string): void {
    const said = log.replaceAll(/^\{.*\}\n/gm, '');
    assert.equal(code, '1', log);
    assert.match(said, /^vault: \S.+\n( {2}\S.+\n)*$/, log);
    assert.doesNotMatch(log, /\n\s+at |internal error|"stack"/);
    const sentence = said.replaceAll(this.#root, '').split('\n')[0] ?? '';
    this.sentences.set(sentence, (this.sentences.get(sentence) ?? 0) + 1);
  }

  /** Checks after the fault: nothing is lost, all downloads are recorded, and no other files are left. */
  async #startsAgain(data: string, client: Client | undefined, downloads: number): Promise<void> {
    const place: Place = { program: this.#program, data, environment: this.#disk.environment };
    const started = startServer(place);
    try {
      await this.#isAsUsual(place, started, client, downloads);
    } finally {
      await started.kill();
    }
  }

  async #isAsUsual(place: Place, started: Started, client: Client | undefined, downloads: number) {
    const { data } = place;
    const server = await this.#soon(started);
    if (server === undefined) throw new Error(`it does not start after the fault: ${started.log()}`);
    const more = await recovered(server, client);
    const made = await runCommand(place, ['certificate', 'create', '--name', 'next', '--domain', 'a.test']);
    assert.equal(made.code, 0, made.stderr);
    const verified = await runCommand(place, ['audit', 'verify']);
    assert.equal(verified.code, 0, verified.stdout);
    assert.equal(await server.kill('SIGTERM'), '0', started.log());
    assert.equal(downloadsIn(data), downloads + more, 'the audit log does not match the downloads');
    // A temporary key file that could not be removed is harmless.
    const mayStay = /^(vault\.db\.before-.*|\.master\.key\.[0-9a-f]{16})$/;
    const left = strangeFiles(data).filter((name) => !mayStay.test(name));
    assert.deepEqual(left, [], 'incomplete files are left');
  }

  async #make(situation: Situation): Promise<void> {
    const folder = join(this.#folder, situation.replaceAll(' ', '-'));
    const place: Place = { program: this.#program, data: folder, environment: {} };
    const done = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(place, args);
      assert.equal(code, 0, stderr);
      return stdout.trim();
    };
    await done('certificate', 'create', '--name=web', '--domain=web.test');
    const rights = ['--scope=certificates:read', '--scope=private_keys:read', '--certificate=*'];
    const client = { certificate: 'web', key: await done('api-key', 'create', '--name=client', ...rights) };
    if (situation === 'a vault that was killed') {
      const server = await startServer(place).listening;
      if (server === undefined) throw new Error('the server is not running');
      assert.equal((await download(server, client)).status, 200);
      await server.kill();
      assert.ok(existsSync(join(folder, 'vault.db-wal')), 'no write-ahead log after a kill');
    }
    this.#templates.set(situation, { folder, client });
  }

  /** With the schema before the audit log was chained. */
  #unpackOld(): void {
    const fixture = join(import.meta.dirname, '..', 'schemas', '0005-key-networks');
    const folder = join(this.#folder, 'an-old-vault');
    mkdirSync(folder, { mode: 0o700 });
    const database = gunzipSync(readFileSync(join(fixture, 'vault.db.gz')));
    writeFileSync(join(folder, 'vault.db'), database, { mode: 0o600 });
    writeFileSync(join(folder, 'master.key'), readFileSync(join(fixture, 'master.key')), { mode: 0o600 });
    const { key } = JSON.parse(readFileSync(join(fixture, 'facts.json'), 'utf8')) as { key: string };
    this.#templates.set('an old vault', { folder, client: { certificate: 'imported', key } });
  }
}

function downloadsIn(data: string): number {
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    assert.equal(database.pragma('integrity_check', { simple: true }), 'ok');
    const sql = "select count(*) from audit_events where action = 'certificate.download'";
    return database.prepare(sql).pluck().get() as number;
  } finally {
    database.close();
  }
}

function download({ url }: Server, { certificate, key }: Client): Promise<Answer> {
  const headers = { Authorization: `Bearer ${key}` };
  return ask(`${url}/api/v1/certificates/${certificate}/private.key`, { headers });
}

/** The number of successful downloads; all other responses must be temporary errors. */
async function askInTrouble(server: Server, client: Client | undefined): Promise<number> {
  assert.equal((await ask(`${server.url}/api/v1/health`)).status, 200);
  const ready = await ask(`${server.url}/api/v1/ready`);
  assert.ok([200, 503].includes(ready.status), ready.body);
  if (client === undefined) return 0;
  const { status, headers, body } = await download(server, client);
  if (status === 200) {
    assert.match(body, /^-----BEGIN PRIVATE KEY-----\n/);
    return 1;
  }
  assert.deepEqual([status, headers['content-type']], [503, 'application/problem+json'], body);
  assert.ok(Number(headers['retry-after']) > 0);
  assert.doesNotMatch(body, /PRIVATE KEY|SQLITE|vault\.db/);
  return 0;
}

/** Waits up to ten seconds until it works. Returns the number of downloads used for that. */
async function recovered(server: Server, client: Client | undefined): Promise<number> {
  await untilReady(server.url);
  if (client === undefined) return 0;
  const { status, body } = await download(server, client);
  assert.equal(status, 200, body);
  return 1;
}

/** The same error at each operation of a start, once persistently and once only at that operation. */
const sweeps: readonly Pick<DiskFault, 'operation' | 'error'>[] = [
  { operation: 'change', error: 'ENOSPC' },
  { operation: 'sync', error: 'EIO' },
  { operation: 'read', error: 'EIO' },
  { operation: 'open', error: 'EMFILE' },
];

/** After this many successful starts in a row, the fault is beyond the last operation of a start. */
const enoughServed = 12;

/** `--starts N` runs every Nth operation of a sweep only. */
export const startFaults: Chamber = async ({ program, folder, amount, say }) => {
  const scene = await StartScene.open({ program, folder });
  const counts = { served: 0, refused: 0 };
  const every = amount('starts') ?? 1;
  for (const situation of situations) {
    for (const trouble of startTroubles) {
      if (trouble.needsVault && situation === 'nothing') continue;
      const tried = await scene.endure(situation, trouble).catch((error: unknown) => {
        throw new Error(`${situation}, ${trouble.title}`, { cause: error });
      });
      counts[tried] += 1;
      say(`${situation}, ${trouble.title}: ${tried}`);
    }
    for (const sweep of sweeps) {
      for (let skip = 0, served = 0; served < enoughServed; skip += every) {
        for (const times of [undefined, 1]) {
          const fault: DiskFault = { ...sweep, pattern: '*', skip, ...(times !== undefined && { times }) };
          const title = JSON.stringify(fault);
          const tried = await scene.endure(situation, { title, faults: [fault] }).catch((error: unknown) => {
            throw new Error(`${situation}, ${title}`, { cause: error });
          });
          counts[tried] += 1;
          if (times === undefined) served = tried === 'served' ? served + 1 : 0;
        }
      }
      say(`${situation}, ${sweep.operation} ${sweep.error}: ${JSON.stringify(counts)}`);
    }
  }
  const findings: Finding[] = [
    { name: 'starts that served', value: counts.served },
    { name: 'starts that refused', value: counts.refused },
  ];
  for (const [sentence, value] of scene.sentences) say(`${value} × ${sentence}`);
  return findings;
};
