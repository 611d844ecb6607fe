/**
 * Audit events of requests on a server: those that wait while a transaction of this node is on its way share the next
 * one. It holds nothing but the end of the log, which all nodes lock as late as possible.
 */
import { type Kysely, sql } from 'kysely';
import { type Integrity, requireIntegrity } from '../../base/integrity.ts';
import type { ChainEnd } from '../audit/audit-chain.ts';
import {
  type EventWriter,
  insertAuditEvents,
  type NewAuditEvent,
  sendAuditEvents,
} from '../audit/audit-insertion.ts';
import { chainEnd, type LogEnd } from '../audit/audit-mark.ts';
import { EventGroup } from '../audit/event-group.ts';
import type { LogMemory } from '../audit/log-memory.ts';
import type { QueryRunner } from '../compiled-query.ts';
import type { Schema } from '../schema/schema.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { PostgresConnection } from './postgres-connection.ts';
import { executeIn } from './postgres-dialect.ts';
import { storable } from './postgres-types.ts';
import { beginWith } from './transaction-begin.ts';

const lockEnd = "select 1 from settings where key = 'audit-mark' for update";

export class AuditAppend {
  readonly #pool: ConnectionPool;
  /** Compiles the queries. */
  readonly #compiler: Pick<QueryRunner, 'getExecutor'>;
  readonly #events = new EventGroup((next) => this.#transact(next));
  readonly #memory: LogMemory;
  #integrity: Integrity | undefined;

  /** A pool of one pipelined connection. */
  constructor(pool: ConnectionPool, compiler: Kysely<Schema>, memory: LogMemory) {
    this.#pool = pool;
    this.#memory = memory;
    this.#compiler = compiler;
  }

  /** Resolves once the events are durable. Rejects with StorageError if they may not be. */
  append(events: readonly NewAuditEvent[], integrity: Integrity): Promise<void> {
    this.#integrity = integrity;
    return this.#events.append(events);
  }

  /** The end of the log is locked and read in one journey to the server; another adds the events and commits. */
  async #transact(next: () => readonly NewAuditEvent[]): Promise<void> {
    const { connection, found } = await beginWith(this.#pool, 'write', async (begun) => {
      const locked = begun.execute(lockEnd, []);
      const reader = this.#writerOn(begun);
      const end = chainEnd(reader, requireIntegrity(reader), this.#memory.end);
      return (await Promise.all([locked, end]))[1];
    });
    try {
      const { sent, end } = sendAuditEvents(this.#writerOn(connection), next().map(storableEvent), found);
      // Where a statement fails, the server ends the transaction with a rollback instead.
      await Promise.all([...sent, connection.commit()]);
      this.#memory.learn(end);
      if (found.lost !== undefined) this.#memory.report(found.lost);
    } catch (error) {
      await connection.rollback();
      throw error;
    } finally {
      this.#pool.release(connection);
    }
  }

  #writerOn(connection: PostgresConnection): EventWriter {
    return {
      getExecutor: () => this.#compiler.getExecutor(),
      executeQuery: (query) => executeIn(connection, query),
      integrity: this.#integrity,
    };
  }
}

/** Adds the events at the end of a transaction that has other locks already. */
export async function extendChain(
  writer: EventWriter,
  events: readonly NewAuditEvent[],
  known: ChainEnd | undefined,
): Promise<LogEnd> {
  await sql.raw(lockEnd).execute(writer);
  return insertAuditEvents(writer, events.map(storableEvent), known);
}

/** What is hashed into the chain must be what the table keeps. */
function storableEvent({
  actor,
  action,
  resource,
  detail,
  ip,
  request_id,
  at,
  row,
}: NewAuditEvent): NewAuditEvent {
  return {
    at,
    row,
    actor: storable(actor),
    action,
    resource: storable(resource),
    detail: storable(detail),
    ip: ip === null ? null : storable(ip),
    request_id: request_id === null ? null : storable(request_id),
  };
}
