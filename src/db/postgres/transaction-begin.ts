/**
 * Begins a transaction together with its first statements, in one journey to the server where statements are pipelined.
 */
import type { ConnectionPool } from './connection-pool.ts';
import type { PostgresConnection, TransactionKind } from './postgres-connection.ts';

/**
 * A connection of the pool on which a transaction has begun, and what `first` found in it. `first` may lock and read,
 * and not write: where the transaction cannot begin, or on a dead connection, its statements are sent again or have no
 * effect. Hand the connection back with `release` after its commit or rollback. Rejects like `ConnectionPool.begin`.
 */
export function beginWith<T>(
  pool: ConnectionPool,
  kind: TransactionKind,
  first: (connection: PostgresConnection) => Promise<T>,
): Promise<{ readonly connection: PostgresConnection; readonly found: T }> {
  return pool.onLiving(async (connection) => {
    const [begun, found] = await Promise.allSettled([connection.begin(kind), first(connection)]);
    // Without a rollback the connection is not reused: its server may not take writes any more.
    if (begun.status === 'rejected') throw begun.reason;
    if (found.status === 'rejected') {
      await connection.rollback();
      throw found.reason;
    }
    return { connection, found: found.value };
  });
}
