/**
 * Audit events of requests, committed together: those of the requests that are answered in one turn of the event loop
 * share one transaction and so one fsync, and each request goes on only when its own event is durable.
 */
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import { insertAuditEvents, type NewAuditEvent } from '../../db/audit/audit-events.ts';
import type { Database } from '../../db/database.ts';
import { type AuditEvent, auditRow } from './audit.ts';

type Waiting = {
  readonly row: NewAuditEvent;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
};

/** More than this never arrives in a turn; it bounds the time that a transaction takes. */
const largestBatch = 500;

export class AuditBatch {
  readonly #db: Database;
  readonly #world: World;
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | undefined;

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#world = world;
  }

  /** Resolves once the event is durable; rejects with a StorageError, and nothing recorded, where it cannot be. */
  append(event: AuditEvent): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#waiting.push({ row: auditRow(event, this.#world.now()), resolve, reject });
    this.#flushing ??= this.#flush();
    return promise;
  }

  /** Resolves when nothing waits any more. */
  async drain(): Promise<void> {
    await this.#flushing;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      await settled();
      const batch = this.#waiting.splice(0, largestBatch);
      try {
        await this.#db.write((writer) =>
          insertAuditEvents(
            writer,
            batch.map(({ row }) => row),
          ),
        );
        for (const { resolve } of batch) resolve();
      } catch (error) {
        const failure =
          error instanceof StorageError
            ? error
            : new StorageError('failed to record an audit event', { cause: error });
        for (const { reject } of batch) reject(failure);
      }
    }
    this.#flushing = undefined;
  }
}

/** Resolves when all requests that can go on without new input have gone on: those that have an event have appended it. */
function settled(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.nextTick(resolve);
  return promise;
}
