/**
 * The writing connection on its own thread, so that commits to a slow disk do not block the event loop. Requests of one
 * turn of the loop are sent in one message.
 */
import type { Worker } from 'node:worker_threads';
import type { Integrity } from '../../base/integrity.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import type { ChainEnd } from '../audit/audit-chain.ts';
import type { NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import type { StatementResult } from './sqlite-statements.ts';
import type { WriteConnection } from './write-connection.ts';
import {
  type LastWord,
  type PackedEnd,
  packEnd,
  packEvents,
  packValues,
  unpackEnd,
  unpackError,
  unpackResult,
  type WriteAnswer,
  type WriteOrder,
  type WriteRequest,
} from './write-messages.ts';

type Result = StatementResult | boolean | PackedEnd | undefined;

type Waiting = PromiseWithResolvers<Result> & { readonly since: number };

export class ThreadConnection implements WriteConnection {
  readonly #thread: Worker;
  readonly #world: Pick<World, 'elapsed'>;
  readonly #ended: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #unsent: WriteRequest[] = [];
  #lastId = 0;
  #taggedBy: Integrity | undefined;
  #isOver = false;

  private constructor(thread: Worker, world: Pick<World, 'elapsed'>) {
    this.#thread = thread;
    this.#world = world;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    thread.on('message', (message: readonly WriteAnswer[] | LastWord) => {
      // Not caught: ends the process.
      if ('fatal' in message) throw unpackError(message.fatal);
      this.#settle(message);
    });
    thread.on('exit', () => {
      this.#isOver = true;
      this.#failAll();
      resolve();
    });
  }

  /**
   * Opens the database at `path` on this thread. Rejects if that fails; an error that ends the thread later is an
   * uncaught exception.
   */
  static async open(thread: Worker, path: string, world: Pick<World, 'elapsed'>): Promise<ThreadConnection> {
    const connection = new ThreadConnection(thread, world);
    const failed = Promise.withResolvers<never>();
    const fail = (error: Error) => failed.reject(startError(error));
    thread.on('error', fail);
    try {
      await Promise.race([failed.promise, connection.#ask({ do: 'open', path })]);
      thread.off('error', fail);
      return connection;
    } catch (error) {
      await thread.terminate();
      throw error;
    }
  }

  async begin(): Promise<void> {
    await this.#ask({ do: 'begin' });
  }

  async execute(sql: string, values: readonly unknown[]): Promise<StatementResult> {
    const result = await this.#ask({ do: 'execute', sql, values: packValues(values) });
    return unpackResult(result as StatementResult);
  }

  async commit(): Promise<void> {
    await this.#ask({ do: 'commit' });
  }

  async rollback(): Promise<void> {
    await this.#ask({ do: 'rollback' });
  }

  async append(
    events: readonly NewAuditEvent[],
    integrity: Integrity,
    known?: ChainEnd | undefined,
  ): Promise<LogEnd> {
    if (this.#taggedBy !== integrity) {
      this.#taggedBy = integrity;
      this.#ask({ do: 'tag', secret: integrity.secret }).catch(() => {
        // The following append fails for the same reason.
      });
    }
    const end = await this.#ask({
      do: 'append',
      count: events.length,
      events: packEvents(events),
      known: known && packEnd(known),
    });
    return unpackEnd(end as PackedEnd);
  }

  async requireWritable(): Promise<void> {
    await this.#ask({ do: 'probe' });
  }

  async checkpoint(): Promise<boolean> {
    return (await this.#ask({ do: 'checkpoint' })) === true;
  }

  waiting(): number {
    const [oldest] = this.#waiting.values();
    return oldest === undefined ? 0 : this.#world.elapsed() - oldest.since;
  }

  async close(): Promise<void> {
    if (!this.#isOver) await this.#ask({ do: 'close' });
    await this.#ended;
  }

  #ask(order: WriteOrder): Promise<Result> {
    if (this.#isOver) return Promise.reject(threadEnded());
    const waiting = { ...Promise.withResolvers<Result>(), since: this.#world.elapsed() };
    this.#lastId += 1;
    this.#waiting.set(this.#lastId, waiting);
    if (this.#unsent.length === 0) process.nextTick(() => this.#send());
    this.#unsent.push({ ...order, id: this.#lastId });
    return waiting.promise;
  }

  #send(): void {
    const requests = this.#unsent;
    this.#unsent = [];
    this.#thread.postMessage(requests);
  }

  #settle(answers: readonly WriteAnswer[]): void {
    for (const answer of answers) {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('failure' in answer) waiting?.reject(unpackError(answer.failure));
      else waiting?.resolve(answer.result);
    }
  }

  #failAll(): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of all) waiting.reject(threadEnded());
  }
}

/** Threads fail to start because of system limits, which Node reports only as text. */
function startError(error: Error): Error {
  const code = /^Worker initialization failure: (E[A-Z]+)$/.exec(error.message)?.[1];
  if (code === undefined) return error;
  const reason = describeSystemError(Object.assign(new Error(code), { code }));
  return new OperatorError(`cannot start the thread that writes to the database: ${reason}`, {
    hint: 'Raise the limits of open files and of threads: "ulimit -n" and "-u", or LimitNOFILE= and TasksMax= in the systemd unit.',
    cause: error,
  });
}

function threadEnded(): StorageError {
  return new StorageError('the thread that writes to the database has ended', {
    hint: 'Restart the vault; the log has the reason.',
  });
}
