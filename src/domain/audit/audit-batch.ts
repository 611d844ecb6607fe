/**
 * Group commit of the audit events of requests: those of one tick of the event loop share one transaction and so one
 * fsync. Each request continues only when its own event is durable.
 */
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';
import type { NewAuditEvent } from '../../db/audit/audit-insertion.ts';
import type { Database } from '../../db/database.ts';
import { type AuditEvent, auditRow } from './audit.ts';

type Batch = { readonly rows: NewAuditEvent[]; readonly recorded: Promise<void> };

/** More events of a tick form further batches: the clients of one get their responses while the next is committed. */
const largestBatch = 16;

export class AuditBatch {
  readonly #db: Database;
  readonly #world: World;
  /** The events of this tick, not yet passed to the database. */
  #batch: Batch | undefined;
  readonly #inFlight = new Set<Promise<void>>();

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#world = world;
  }

  /** Resolves once the event is durable; otherwise rejects with a StorageError, and nothing is recorded. */
  append(event: AuditEvent): Promise<void> {
    if (this.#batch === undefined || this.#batch.rows.length >= largestBatch) this.#batch = this.#begin();
    this.#batch.rows.push(auditRow(event, this.#world.now()));
    return this.#batch.recorded;
  }

  /** Resolves when no event is pending. */
  async drain(): Promise<void> {
    while (this.#inFlight.size > 0) await Promise.allSettled(this.#inFlight);
  }

  #begin(): Batch {
    const rows: NewAuditEvent[] = [];
    const recorded = this.#record(rows);
    this.#inFlight.add(recorded);
    const over = () => void this.#inFlight.delete(recorded);
    recorded.then(over, over);
    return { rows, recorded };
  }

  async #record(rows: NewAuditEvent[]): Promise<void> {
    await settled();
    if (this.#batch?.rows === rows) this.#batch = undefined;
    try {
      await this.#db.append(rows);
    } catch (error) {
      if (error instanceof StorageError) throw error;
      throw new StorageError('failed to record an audit event', { cause: error });
    }
  }
}

/** Resolves when all requests that can proceed without new input have done so, and have appended their events. */
function settled(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.nextTick(resolve);
  return promise;
}
