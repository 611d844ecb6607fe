/**
 * Each trouble that a vault can get into on its machine: it begins while the executable serves, lasts a while, and ends. In
 * it nothing is answered that is not true; after it the same process serves again, and its books are right.
 */
import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { type Launch, serve } from '../harness/vault-process.ts';
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

/** What a trouble has to do with its means: the disk under the vault, where it stands on one that fails. */
type Means = { readonly scene: Scene; readonly disk: DiskShim | undefined };

export type Trouble = {
  readonly title: string;
  /** A program of the system without which it cannot be made. */
  readonly needs?: string;
  /** Whether the vault stands on the disk that fails on demand. */
  readonly onDisk?: true;
  readonly launch?: (scratch: string) => Launch;
  /** Begins it and hands back what ends it. */
  readonly begin: (means: Means) => (() => void) | Promise<() => void>;
  /** Whether downloads are refused as long as it lasts, because they cannot be recorded; else they all go on. */
  readonly refuses: boolean;
  /** Whether commands find another vault, or none, while it lasts. */
  readonly hidesVault?: true;
  readonly leave?: Leave;
  /** What must hold besides when it is over. */
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
  onDisk('what is written cannot be made durable', { operation: 'sync', error: 'EIO', pattern: '*' }),
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
    title: 'another file stands where the database was',
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

/** Somebody who connects, says nothing, and comes back a while after the vault has closed that. */
class SilentConnection {
  readonly #to: [number, string];
  #socket: Socket;
  #isOver = false;
  /** When it is connected, or has been refused: both take up what there is. */
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
  /** In a trouble that lasts: the means of its second half, which do not rise. */
  readonly memory?: number;
  readonly descriptors?: number;
};

/** From here on a trouble lasts: nothing may pile up in it. */
const longMs = 60_000;

/** Lives through the trouble for `spanMs` and checks all that must hold in it and after it. */
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
    trouble.hidesVault || trouble.leave?.drops ? undefined : tryToMakeKey(scene, 'made in trouble');
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
  // One more is the download that showed that it has recovered.
  const downloads = handedOut(calm) + handedOut(during) + 1;
  assert.equal(recordedDownloads(scene), downloads, 'each download is recorded, and nothing else is');
  const megabytesGrown = residentMegabytes(scene) - before;
  const logMegabytes = logBytes(scene) / 2 ** 20;
  assert.ok(logMegabytes <= 8, `the write-ahead log has ${logMegabytes} MB`);
  assert.ok(megabytesGrown < 80, `it has grown by ${megabytesGrown} MB`);
  await trouble.then?.(scene);

  await scene.server.end('SIGKILL');
  assert.equal(recordedDownloads(scene), downloads, 'what was recorded is there after kill -9');
  const again = { ...scene, server: await serve(t, scene.dataDir, scene.launch) };
  await recovered(again);
  const metadata = `${again.server.url}/api/v1/certificates/web`;
  if (made !== undefined)
    assert.equal((await ask(metadata, made)).status, 200, 'a key that was printed works');
  assert.equal((await ask(metadata, scene.revoked)).status, 401, 'a revoked key is refused');
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

/** In these most would pile up: requests that wait or fail, and connections. */
const worst = ['the disk is full', 'another process holds the write lock', 'no file descriptor is left'];

/** `--seconds` is how long each lasts; `--hold` is that for the worst three, and leaves the others out. */
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
      findings.push({ name: `${trouble.title}: well again after`, value: endured.recoveryMs, unit: 'ms' });
    } finally {
      for (const end of ends) await end();
    }
  }
  return findings;
};
