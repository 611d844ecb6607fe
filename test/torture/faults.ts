/**
 * Faults of the machine that begin while the executable serves, last a while, and end. During a fault all responses
 * must be correct. After it the same process must serve again, and its records must be complete.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { type Launch, serve } from '../harness/processes/vault-process.ts';
import type { Chamber, Finding } from './chamber.ts';
import { type DiskFault, type DiskShim, diskShim } from './disk-shim.ts';
import {
  handedOut,
  type Leave,
  live,
  logBytes,
  openScene,
  recordedDownloads,
  recovered,
  residentMegabytes,
  type Scene,
  type Tally,
  tryToMakeKey,
} from './fault-scene.ts';
import { watchVitals } from './vitals.ts';

/** The input of a fault: the scene and, if used, the failing disk. */
type Means = { readonly scene: Scene; readonly disk: DiskShim | undefined };

export type Trouble = {
  readonly title: string;
  /** A program that the fault needs. */
  readonly needs?: string;
  /** Whether the vault uses the failing disk. */
  readonly onDisk?: true;
  readonly launch?: (scratch: string) => Launch;
  /** Starts the fault and returns a function that ends it. */
  readonly begin: (means: Means) => (() => void) | Promise<() => void>;
  /** Whether downloads fail during the fault, because they cannot be recorded; else they all succeed. */
  readonly refuses: boolean;
  /** Whether commands find another vault, or none, during the fault. */
  readonly hidesVault?: true;
  readonly leave?: Leave;
  /** Additional checks after the fault. */
  readonly then?: (scene: Scene) => Promise<void>;
};

function onDisk(title: string, ...faults: readonly DiskFault[]): Trouble {
  return {
    title,
    ...{ needs: 'cc', onDisk: true, refuses: true },
    begin: ({ disk }) => {
      disk?.fail(...faults);
      return () => disk?.fail();
    },
  };
}

/** A connection of another process. */
function outside({ dataDir }: Scene): BetterSqlite3.Database {
  return new BetterSqlite3(join(dataDir, 'vault.db'), { fileMustExist: true });
}

const faketime = [
  '/usr/lib/x86_64-linux-gnu/faketime',
  '/usr/lib/aarch64-linux-gnu/faketime',
  '/usr/lib/faketime',
];

function clockLaunch(scratch: string): Launch {
  writeFileSync(join(scratch, 'clock'), '+0\n');
  return {
    environment: {
      LD_PRELOAD: faketime.map((folder) => `${folder}/libfaketimeMT.so.1`).join(' '),
      FAKETIME_TIMESTAMP_FILE: join(scratch, 'clock'),
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  };
}

function clock(title: string, offset: string): Trouble {
  return {
    title,
    ...{ needs: 'faketime', launch: clockLaunch, refuses: false },
    begin: ({ scene: { scratch } }) => {
      writeFileSync(join(scratch, 'clock'), `${offset}\n`);
      return () => writeFileSync(join(scratch, 'clock'), '+0\n');
    },
  };
}

export const troubles: readonly Trouble[] = [
  onDisk('the disk is full', { operation: 'write', error: 'ENOSPC', pattern: '*' }),
  onDisk('the quota is used up', { operation: 'write', error: 'EDQUOT', pattern: '*' }),
  onDisk('the disk cannot be written', { operation: 'write', error: 'EIO', pattern: '*' }),
  onDisk('writes cannot be made durable', { operation: 'sync', error: 'EIO', pattern: '*' }),
  onDisk(
    'the disk can neither be read nor written',
    { operation: 'read', error: 'EIO', pattern: '*' },
    { operation: 'write', error: 'EIO', pattern: '*' },
  ),
  onDisk('the file system has become read-only', { operation: 'change', error: 'EROFS', pattern: '*' }),
  {
    title: 'nothing can be read from the disk',
    ...{ needs: 'cc', onDisk: true, refuses: false },
    leave: { mayRefuse: true },
    begin: ({ disk }) => {
      disk?.fail({ operation: 'read', error: 'EIO', pattern: '*' });
      return () => disk?.fail();
    },
  },
  {
    title: 'another process holds the write lock',
    refuses: true,
    begin: ({ scene }) => {
      const db = outside(scene);
      db.exec('begin immediate');
      return () => db.close();
    },
  },
  {
    title: 'another process reads without end',
    refuses: false,
    begin: ({ scene }) => {
      const db = outside(scene);
      db.exec('begin');
      db.prepare('select count(*) from audit_events').get();
      return () => db.close();
    },
  },
  {
    title: 'the database has been moved away',
    hidesVault: true,
    refuses: true,
    begin: ({ scene: { dataDir } }) => {
      renameSync(join(dataDir, 'vault.db'), join(dataDir, 'elsewhere'));
      return () => renameSync(join(dataDir, 'elsewhere'), join(dataDir, 'vault.db'));
    },
  },
  {
    title: 'the database has been replaced by a copy',
    hidesVault: true,
    refuses: true,
    begin: ({ scene: { dataDir } }) => {
      const path = join(dataDir, 'vault.db');
      renameSync(path, join(dataDir, 'elsewhere'));
      copyFileSync(join(dataDir, 'elsewhere'), path);
      return () => renameSync(join(dataDir, 'elsewhere'), path);
    },
  },
  {
    title: 'the data directory has been moved away',
    hidesVault: true,
    refuses: true,
    begin: ({ scene: { dataDir } }) => {
      renameSync(dataDir, `${dataDir}.elsewhere`);
      return () => renameSync(`${dataDir}.elsewhere`, dataDir);
    },
  },
  {
    title: 'the master key has been taken away',
    hidesVault: true,
    refuses: false,
    begin: ({ scene: { dataDir } }) => {
      renameSync(join(dataDir, 'master.key'), join(dataDir, 'elsewhere'));
      return () => renameSync(join(dataDir, 'elsewhere'), join(dataDir, 'master.key'));
    },
  },
  {
    title: 'no file descriptor is left',
    refuses: false,
    leave: { drops: true },
    launch: () => ({ program: ['sh', '-c', 'ulimit -n 100; exec "$0" "$@"', executable] }),
    begin: async ({ scene: { server } }) => {
      const { hostname, port } = new URL(server.url);
      const silent = Array.from({ length: 300 }, () => new SilentConnection(Number(port), hostname));
      await Promise.all(silent.map(({ begun }) => begun));
      return () => {
        for (const connection of silent) connection.end();
      };
    },
  },
  clock('the clock is a year ahead', '+365d'),
  clock('the clock is a year behind', '-365d'),
];

const executable = join(import.meta.dirname, '..', '..', 'dist', 'vault');

/** A client that connects, sends nothing, and reconnects a while after the vault closed the connection. */
class SilentConnection {
  readonly #to: [number, string];
  #socket: Socket;
  #isOver = false;
  /** Resolves when it is connected or refused; both use resources. */
  readonly begun: Promise<void>;

  constructor(...to: [number, string]) {
    this.#to = to;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.begun = promise;
    this.#socket = this.#open()
      .on('connect', resolve)
      .on('error', () => resolve());
  }

  #open(): Socket {
    const socket = connect(...this.#to);
    socket
      .on('error', () => undefined)
      .on('close', () => {
        setTimeout(() => {
          if (!this.#isOver) this.#socket = this.#open();
        }, 500).unref();
      });
    return socket;
  }

  end(): void {
    this.#isOver = true;
    this.#socket.destroy();
  }
}

export type Endured = {
  readonly refusedDownloads: number;
  readonly downloads: number;
  readonly recoveryMs: number;
  readonly megabytesGrown: number;
  readonly logMegabytes: number;
  /** For long faults: the mean values of the second half, which must not rise. */
  readonly memory?: number;
  readonly descriptors?: number;
};

/** Faults of at least this duration are checked for leaks. */
const longMs = 60_000;

/** Runs the fault for `spanMs` and checks everything during and after it. */
export async function endure(
  t: Pick<TestContext, 'after'>,
  scratch: string,
  trouble: Trouble,
  spanMs: number,
): Promise<Endured> {
  let disk: DiskShim | undefined;
  const scene = await openScene(t, scratch, (root) => {
    if (trouble.onDisk) disk = diskShim(scratch, root);
    return disk === undefined ? (trouble.launch?.(scratch) ?? {}) : { environment: disk.environment };
  });
  const calm: Tally = new Map();
  const during: Tally = new Map();
  await live(scene, calm, within(spanMs / 4));
  const before = residentMegabytes(scene);
  const end = await trouble.begin({ scene, disk });
  const isOver = within(spanMs);
  const vitals = spanMs >= longMs ? watchVitals(scene) : undefined;
  const making =
    trouble.hidesVault || trouble.leave?.drops ? undefined : tryToMakeKey(scene, 'created during a fault');
  try {
    await live(scene, during, isOver, trouble.leave);
  } finally {
    vitals?.stop();
    await making;
    end();
  }
  const made = await making;
  const recoveryMs = await recovered(scene);
  await live(scene, calm, within(spanMs / 4));
  const refused = during.get('download 503') ?? 0;
  const gone = during.get('download 200') ?? 0;
  const told = JSON.stringify([...during]);
  if (trouble.refuses) assert.ok(refused > 0 && gone === 0, told);
  else if (trouble.leave === undefined) assert.ok(refused === 0 && gone > 0, told);
  // One more, for the download that showed the recovery.
  const downloads = handedOut(calm) + handedOut(during) + 1;
  assert.equal(recordedDownloads(scene), downloads, 'the audit log does not match the downloads');
  const megabytesGrown = residentMegabytes(scene) - before;
  const logMegabytes = logBytes(scene) / 2 ** 20;
  assert.ok(logMegabytes <= 8, `the write-ahead log has ${logMegabytes} MB`);
  assert.ok(megabytesGrown < 80, `it has grown by ${megabytesGrown} MB`);
  await trouble.then?.(scene);

  await scene.server.end('SIGKILL');
  assert.equal(recordedDownloads(scene), downloads, 'kill -9 lost recorded downloads');
  const again = { ...scene, server: await serve(t, scene.dataDir, scene.launch) };
  await recovered(again);
  const metadata = `${again.server.url}/api/v1/certificates/web`;
  if (made !== undefined)
    assert.equal((await ask(metadata, made)).status, 200, 'a created key does not work');
  assert.equal((await ask(metadata, scene.revoked)).status, 401, 'a revoked key works');
  await again.server.end();
  return {
    refusedDownloads: refused,
    downloads,
    recoveryMs,
    megabytesGrown,
    logMegabytes,
    ...vitals?.means(),
  };
}

function ask(url: string, key: string): Promise<Response> {
  return fetch(url, { headers: { Authorization: `Bearer ${key}` } });
}

function within(ms: number): () => boolean {
  const over = performance.now() + ms;
  return () => performance.now() >= over;
}

/** The faults that accumulate the most waiting or failing requests and connections. */
const worst = ['the disk is full', 'another process holds the write lock', 'no file descriptor is left'];

/** `--seconds` is the duration of each fault; `--hold` runs only the worst three, for this long. */
export const faults: Chamber = async ({ folder, amount, say }) => {
  const hold = amount('hold');
  const span = (hold ?? amount('seconds') ?? 30) * 1000;
  const findings: Finding[] = [];
  const meant = troubles.filter(({ title }) => hold === undefined || worst.includes(title));
  for (const trouble of meant) {
    const ends: (() => unknown)[] = [];
    const t = { after: (end: () => unknown) => ends.push(end) } as unknown as Pick<TestContext, 'after'>;
    try {
      const endured = await endure(t, mkdtempSync(join(folder, 'fault-')), trouble, span);
      say(`${trouble.title}: ${JSON.stringify(endured)}`);
      findings.push({ name: `${trouble.title}: refused`, value: endured.refusedDownloads });
      findings.push({ name: `${trouble.title}: recovered after`, value: endured.recoveryMs, unit: 'ms' });
    } finally {
      for (const end of ends) await end();
    }
  }
  return findings;
};
