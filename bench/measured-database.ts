/**
 * A PostgreSQL server under measurement, as durable as in operation: its processor time, transactions and disk space.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { needsPostgres } from '../test/harness/postgres/binaries.ts';
import { PostgresServer } from '../test/harness/postgres/postgres.ts';
import type { DatabaseWork } from './nodes-load.ts';
import { processorTime } from './server-process.ts';

/** What tests leave out for speed; the other settings are the server's own. */
const durable = {
  ...{ fsync: 'on', full_page_writes: 'on', synchronous_commit: 'on' },
  ...{ shared_buffers: '128MB', checkpoint_timeout: '5min', autovacuum_naptime: '1min' },
};

/** Magic number of tmpfs (statfs(2)). */
const memoryFileSystem = 0x01021994;

export class MeasuredDatabase {
  readonly #server: PostgresServer;
  /** Of the process that starts all others. */
  readonly #pid: number;

  private constructor(server: PostgresServer, pid: number) {
    this.#server = server;
    this.#pid = pid;
  }

  /** Why this machine cannot measure one; undefined if it can. */
  static obstacle(): string | undefined {
    if (process.platform !== 'linux') return 'it needs Linux';
    if (statfsSync(tmpdir()).type === memoryFileSystem)
      return `${tmpdir()} is in memory, where writes need no fsync; set TMPDIR to a directory on a disk`;
    return needsPostgres().skip;
  }

  static async start(): Promise<MeasuredDatabase> {
    const server = await PostgresServer.start({ settings: durable });
    const pid = readFileSync(join(server.socketDir, 'data', 'postmaster.pid'), 'utf8').split('\n', 1)[0];
    return new MeasuredDatabase(server, Number(pid));
  }

  /** Makes an empty database; returns its URL. */
  createDatabase(): Promise<string> {
    return this.#server.createDatabase();
  }

  /** Milliseconds of processor time so far, of all its processes and those that have ended. */
  #processorTime(): number {
    const { stdout } = spawnSync('pgrep', ['-P', String(this.#pid)], { encoding: 'utf8' });
    const running = stdout
      .split('\n')
      .filter(Boolean)
      .map((pid) => timeOf(pid));
    return running.reduce((sum, each) => sum + each, timeOf(this.#pid, { withEnded: true }));
  }

  /** What it has done so far. */
  async work(): Promise<DatabaseWork> {
    // The number of the next transaction that writes, and the end of the write-ahead log; both are exact at once.
    const counters = `select pg_snapshot_xmax(pg_current_snapshot())::text as next,
      (pg_current_wal_insert_lsn() - '0/0')::text as logged`;
    const [row] = await this.#server.query<{ next: string; logged: string }>(counters);
    return {
      seconds: performance.now() / 1000,
      processorMs: this.#processorTime(),
      writes: Number(row?.next),
      logged: Number(row?.logged),
    };
  }

  /** Rows of a table in the database of this URL, and its bytes on disk with its indexes. */
  async sizeOf(table: string, url: string): Promise<{ readonly rows: number; readonly bytes: number }> {
    const sizes = `select count(*)::text as rows, pg_total_relation_size('${table}')::text as bytes from ${table}`;
    const [row] = await this.#server.query<{ rows: string; bytes: string }>(
      sizes,
      [],
      new URL(url).pathname.slice(1),
    );
    return { rows: Number(row?.rows), bytes: Number(row?.bytes) };
  }

  remove(): Promise<void> {
    return this.#server.remove();
  }
}

/** 0 of a process that has just ended: its parent has its time. */
function timeOf(pid: number | string, options?: { readonly withEnded: boolean }): number {
  try {
    return processorTime(`/proc/${pid}/stat`, options);
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(String((error as NodeJS.ErrnoException).code))) return 0;
    throw error;
  }
}
