/**
 * What `vault doctor` wants to know of a PostgreSQL server: how safe its commits are, who else may, and what time it
 * has.
 */
import type { World } from '../../base/world.ts';
import type { ServerFacts } from '../engine.ts';
import type { ConnectionPool } from './connection-pool.ts';

const question = `select
  current_setting('server_version') as "version",
  current_setting('synchronous_commit') as "synchronousCommit",
  current_setting('synchronous_standby_names') as "synchronousStandbyNames",
  current_setting('fsync')::bool as "fsync",
  current_setting('full_page_writes')::bool as "fullPageWrites",
  current_setting('max_connections')::int as "maxConnections",
  has_schema_privilege('public', $1, 'create') as "isSchemaOpen"`;

const standbysQuestion = `select application_name as "name", state, sync_state as "sync"
  from pg_stat_replication order by application_name`;

const clockQuestion = `select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as "server"`;

type Standbys = readonly {
  readonly name: string;
  readonly state: string | null;
  readonly sync: string | null;
}[];

/** Rejects as `ConnectionPool.read`. */
export async function serverFacts(pool: ConnectionPool, world: World): Promise<ServerFacts> {
  const connection = await pool.begin('snapshot');
  try {
    const { place, isEncrypted, isPooled, isSocket } = connection.facts;
    const { rows } = await connection.execute(question, [pool.url.schema]);
    const standbys = await connection.execute(standbysQuestion, []);
    const before = world.now();
    const clock = await connection.execute(clockQuestion, []);
    const after = world.now();
    const [facts] = rows as Omit<ServerFacts, 'clock' | 'standbys' | 'place' | 'isEncrypted' | 'isPooled'>[];
    const [{ server } = { server: Number.NaN }] = clock.rows as { server: number }[];
    if (facts === undefined) throw new Error('no answer');
    return {
      ...facts,
      fsync: Boolean(facts.fsync),
      fullPageWrites: Boolean(facts.fullPageWrites),
      isSchemaOpen: Boolean(facts.isSchemaOpen),
      ...{ place, isEncrypted, isPooled, isSocket },
      standbys: (standbys.rows as Standbys).map(({ name, state, sync }) => ({
        name,
        state: state ?? undefined,
        sync: sync ?? undefined,
      })),
      clock: { server, before, after },
    };
  } finally {
    await connection.rollback();
    pool.release(connection);
  }
}
