/**
 * Real PostgreSQL servers for tests: one that all tests of a process share, or one of a test's own, which it may stop,
 * kill and pause. They listen on a unix socket and on 127.0.0.1.
 */
import { chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import pg from 'pg';
import { freePort } from '../processes/port.ts';
import { type PostgresKind, passwords, postgresBinaries, serverUser } from './binaries.ts';
import { PostgresProcess } from './process.ts';

export type PostgresOptions = {
  readonly kind?: PostgresKind;
  /** Settings of postgresql.conf. Without them a power cut would lose data (fsync=off), which no test has. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf; without them every role may connect from this machine without a password. */
  readonly access?: readonly string[];
  /** PEM texts; the server then offers TLS, and asks for certificates of clients that `clientCa` signed. */
  readonly tls?: { readonly certificate: string; readonly key: string; readonly clientCa?: string };
  /** Starts in recovery: reads only, until `select pg_promote()`. */
  readonly standby?: boolean;
};

type Row = Record<string, unknown>;
type Role = keyof typeof passwords;

const defaults = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '16MB',
  // Checkpoints in the middle of a test would only cost time.
  checkpoint_timeout: '1h',
  autovacuum_naptime: '5min',
  unix_socket_permissions: '0777',
};

let shared: Promise<PostgresServer> | undefined;

/** The server that all tests of this process share; it starts with the first call and ends with the process. */
export function postgresServer(): Promise<PostgresServer> {
  shared ??= PostgresServer.start({});
  return shared;
}

/** A server of this test alone. */
export async function startPostgres(
  t: Pick<TestContext, 'after'>,
  options: PostgresOptions = {},
): Promise<PostgresServer> {
  const server = await PostgresServer.start(options);
  t.after(() => server.remove());
  return server;
}

export class PostgresServer {
  readonly port: number;
  readonly #process: PostgresProcess;
  readonly #settings: Readonly<Record<string, string>>;
  #databases = 0;

  private constructor(port: number, server: PostgresProcess, settings: Readonly<Record<string, string>>) {
    this.port = port;
    this.#process = server;
    this.#settings = settings;
  }

  static async start(options: PostgresOptions): Promise<PostgresServer> {
    const started = new PostgresProcess(postgresBinaries(options.kind));
    const port = await freePort();
    const own = {
      listen_addresses: '127.0.0.1',
      port: String(port),
      unix_socket_directories: started.folder,
    };
    const tls = options.tls === undefined ? {} : writeTls(started.data, options.tls);
    if (options.access !== undefined) write(started.data, 'pg_hba.conf', `${options.access.join('\n')}\n`);
    if (options.standby === true) write(started.data, 'standby.signal', '');
    const server = new PostgresServer(port, started, { ...defaults, ...own, ...tls, ...options.settings });
    await server.start();
    return server;
  }

  /** The folder with the unix socket. */
  get socketDir(): string {
    return this.#process.folder;
  }

  /** What it wrote since it was started last. */
  get log(): string {
    return this.#process.log;
  }

  /** The URL of a database at 127.0.0.1, as the role `vault` unless another is given. */
  url(database: string, query: Readonly<Record<string, string>> = {}, role: Role = 'vault'): string {
    const url = new URL(`postgres://${role}@127.0.0.1:${this.port}/${encodeURIComponent(database)}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url.href;
  }

  /**
   * Creates a database that `vault` owns, empty or as `template` is; returns its URL. With `locale` it sorts text as
   * ICU does for it ("en-US"), otherwise by bytes.
   */
  async createDatabase(
    name = `vault_${++this.#databases}`,
    { template = 'template0', locale }: { template?: string; locale?: string } = {},
  ): Promise<string> {
    const sorted = locale === undefined ? '' : ` locale_provider icu icu_locale '${locale}'`;
    // Half the time of a copy through the log, where nothing waits for a disk.
    const how = `owner vault template ${quoted(template)} strategy file_copy`;
    await this.query(`create database ${quoted(name)} ${how}${sorted}`);
    return this.url(name);
  }

  /** Ends its connections first. */
  async dropDatabase(name: string): Promise<void> {
    await this.query(`drop database if exists ${quoted(name)} with (force)`);
  }

  /** The rows of a statement that the superuser runs on a connection of its own. */
  async query<R extends Row = Row>(
    sql: string,
    values: readonly unknown[] = [],
    database = 'postgres',
  ): Promise<R[]> {
    const where = { host: this.socketDir, port: this.port, database };
    const client = new pg.Client({ ...where, user: 'postgres', password: passwords.postgres });
    await client.connect();
    try {
      return (await client.query<R>(sql, [...values])).rows;
    } finally {
      await client.end();
    }
  }

  /** Starts it again after `stop` or `kill`, on the same port. */
  start(): Promise<void> {
    return this.#process.start(this.#settings);
  }

  /** See `PostgresProcess.stop`. */
  stop(mode: 'fast' | 'immediate' = 'fast'): Promise<void> {
    return this.#process.stop(mode);
  }

  /** All its processes at once, by SIGKILL. */
  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** All its processes, by SIGSTOP: connections stay open, and nothing answers. */
  pause(): void {
    this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  remove(): Promise<void> {
    return this.#process.remove();
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function writeTls(data: string, { certificate, key, clientCa }: NonNullable<PostgresOptions['tls']>) {
  write(data, 'server.crt', certificate);
  write(data, 'server.key', key);
  if (clientCa === undefined) return { ssl: 'on' };
  write(data, 'client-ca.crt', clientCa);
  return { ssl: 'on', ssl_ca_file: 'client-ca.crt' };
}

function write(data: string, name: string, text: string): void {
  const path = join(data, name);
  writeFileSync(path, text, { mode: 0o600 });
  if (serverUser.uid !== undefined) chownSync(path, serverUser.uid, serverUser.gid ?? 0);
}
