/**
 * Opens a connection to the first of the URL's hosts that takes writes. A silent host delays the others only for a
 * moment; standbys are passed over.
 */
import type { Client } from 'pg';
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import { type Encryption, encryptionsFor } from './connection-tls.ts';
import { type ConnectionUrl, type Host, isSocket, placeOf, sslModeFor } from './connection-url.ts';
import { passwordFor } from './password-file.ts';
import { PostgresConnection, type ServerLimits, sessionSettings } from './postgres-connection.ts';
import { postgresTypes } from './postgres-types.ts';
import { requireSafeServer, type ServerStateRow, serverStateIn, serverStateQuery } from './server-safety.ts';
import { isPermanent, storageErrorFrom } from './storage-error.ts';

export type OpeningOptions = {
  readonly url: ConnectionUrl;
  readonly limits: ServerLimits;
  readonly world: World;
  /** Whether statements are sent before those before them have ended. */
  readonly isPipelined?: boolean;
  /** Called when the connection can no longer be used. */
  readonly onEnd: (connection: PostgresConnection) => void;
};

/** How long one host may be silent before the next is tried as well. */
const staggerMs = 500;
const keepAliveMs = 10_000;

/** Rejects with StorageError if no host takes writes now, OperatorError if that needs a person. */
export async function openConnection(options: OpeningOptions): Promise<PostgresConnection> {
  const { url, world } = options;
  const done = new AbortController();
  const attempts: Promise<PostgresConnection>[] = [];
  for (const [index, host] of url.hosts.entries()) {
    const before = attempts.at(-1) ?? Promise.reject(new Error('none'));
    attempts.push(whenDue(before, index, world, done.signal).then(() => openAt(host, options, done.signal)));
  }
  let winner: PostgresConnection | undefined;
  try {
    winner = await Promise.any(attempts);
    return winner;
  } catch (error) {
    throw summary((error as AggregateError).errors);
  } finally {
    done.abort();
    void closeOthers(attempts, winner);
  }
}

/** Some may have been about to answer, too. */
async function closeOthers(
  attempts: readonly Promise<PostgresConnection>[],
  winner: PostgresConnection | undefined,
): Promise<void> {
  for (const one of await Promise.allSettled(attempts)) {
    if (one.status === 'fulfilled' && one.value !== winner) one.value.close();
  }
}

/** Resolves when the attempt before has failed or been silent for a moment. */
async function whenDue(
  before: Promise<unknown>,
  index: number,
  world: World,
  signal: AbortSignal,
): Promise<void> {
  const failed = new Promise<void>((resolve) => {
    before.catch(() => resolve());
  });
  if (index === 0) return;
  await Promise.race([failed, world.sleep(staggerMs * index, signal)]);
  if (signal.aborted) throw new Error('another host answered');
}

async function openAt(host: Host, options: OpeningOptions, signal: AbortSignal): Promise<PostgresConnection> {
  const place = placeOf(host);
  const encryptions = await encryptionsFor(options.url, sslModeFor(options.url, host));
  for (const [index, encryption] of encryptions.entries()) {
    try {
      return await openWith(host, encryption, options, signal);
    } catch (error) {
      if (index + 1 < encryptions.length && isRefusedAsEncrypted(error)) continue;
      throw storageErrorFrom(error, place);
    }
  }
  throw new Error('no way to connect');
}

/** Whether the server may accept a connection that is encrypted, or is not. */
function isRefusedAsEncrypted(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (message === 'The server does not support SSL connections' || code === '28000') return true;
  return code === 'EPROTO' || String(code).startsWith('ERR_SSL_');
}

async function openWith(
  host: Host,
  encryption: Encryption,
  { url, limits, world, isPipelined = false, onEnd }: OpeningOptions,
  signal: AbortSignal,
): Promise<PostgresConnection> {
  const client = await newClient(url, host, encryption);
  const end = (message: string) => client.connection.stream.destroy(new Error(message));
  const cancel = () => end('Connection terminated');
  const opened = new AbortController();
  // Until the connection has its own listener, errors reject what is awaited.
  client.on('error', cancel);
  signal.addEventListener('abort', cancel);
  void world.sleep(url.connectTimeoutMs, opened.signal).then(() => {
    if (!opened.signal.aborted) end('timeout expired');
  });
  try {
    if (signal.aborted) throw new Error('Connection terminated');
    await client.connect();
    return await greet(client, host, { url, limits, isPipelined, onEnd });
  } catch (error) {
    cancel();
    throw error;
  } finally {
    opened.abort();
    signal.removeEventListener('abort', cancel);
  }
}

/** Asks the server what it is, and prepares the session if it is our own. */
async function greet(
  client: Client,
  host: Host,
  { url, limits, isPipelined = false, onEnd }: Omit<OpeningOptions, 'world'>,
): Promise<PostgresConnection> {
  const question = `${serverStateQuery}, pg_backend_pid() as "pid"`;
  const { rows } = await client.query<ServerStateRow & { pid: number }>(question);
  const [row] = rows;
  if (row === undefined) throw new Error('the server did not say what it is');
  const state = serverStateIn(row);
  const place = placeOf(host);
  requireSafeServer(state, place);
  const isPooled = row.pid !== (client as unknown as { processID: number }).processID;
  if (!isPooled) await client.query(sessionSettings(url.schema, limits, 'session'));
  const { encrypted } = client.connection.stream as { encrypted?: boolean };
  const link = { isPooled, isPipelined, isEncrypted: encrypted === true, isSocket: isSocket(host.host) };
  return new PostgresConnection(client, { state, ...link, place, schema: url.schema, limits }, onEnd);
}

/** The library is loaded when it is needed first: with SQLite, never. */
async function newClient(url: ConnectionUrl, host: Host, encryption: Encryption): Promise<Client> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    host: host.host,
    port: host.port,
    user: url.user,
    database: url.database,
    password: async () => {
      const password = await passwordFor(url, host);
      // Without this the library would look for one itself.
      if (password === undefined) throw new Error('client password must be a string');
      return password;
    },
    ssl: encryption,
    application_name: url.applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    types: postgresTypes,
  });
  // The library takes these from PGOPTIONS and PGREPLICATION, which are meant for other programs.
  const { connectionParameters } = client as unknown as { connectionParameters: Record<string, unknown> };
  connectionParameters.options = undefined;
  connectionParameters.replication = undefined;
  (client as unknown as { replication: unknown }).replication = undefined;
  return client;
}

/** Only what all hosts refuse needs a person: a standby that lags behind may not know the database yet. */
function summary(errors: readonly unknown[]): unknown {
  const [first] = errors;
  if (errors.length === 1 || errors.every(isPermanent)) return first;
  const all = errors.map((error) => (error as Error).message).join('; ');
  return new StorageError(`no PostgreSQL server takes writes: ${all}`, {
    hint: 'Check that one of the servers in the database URL is the primary.',
    cause: first,
  });
}
