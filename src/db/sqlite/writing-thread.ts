/**
 * The writing thread: executes the transactions of the event loop, and commits audit events that arrive meanwhile
 * together, so that each event waits for at most two commits, even on a slow disk.
 */
import type { KeyObject } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import type { Integrity } from '../../base/integrity.ts';
import type { World } from '../../base/world.ts';
import { insertAuditEvents, type NewAuditEvent } from '../audit/audit-insertion.ts';
import type { LogEnd } from '../audit/audit-mark.ts';
import { LogMemory } from '../audit/log-memory.ts';
import type { QueryRunner } from '../compiled-query.ts';
import { LostLogError } from './lost-log.ts';
import { queryRunner } from './sqlite-dialect.ts';
import type { StatementResult } from './sqlite-statements.ts';
import { TransactionGuard } from './transaction-guard.ts';
import { type DirectConnection, openInPlace } from './write-connection.ts';
import {
  type LastWord,
  type PackedEnd,
  packEnd,
  packError,
  unpackEnd,
  unpackEvents,
  type WriteAnswer,
  type WriteOrder,
  type WriteRequest,
} from './write-messages.ts';

type AppendRequest = Extract<WriteRequest, { readonly do: 'append' }>;
type OtherRequest = Exclude<WriteRequest, AppendRequest>;

/** Bounds the time that a transaction takes. */
const maxEvents = 500;

/** Fewer events are not worth their own commit. */
const worthACommit = 16;

/** After a commit this slow, waiting a fraction of its time for more events costs less than another one. */
const slowCommitMs = 4;
const gatheringShare = 8;
const maxGatheringMs = 5;

export class WritingThread {
  readonly #port: MessagePort;
  readonly #world: World;
  /** Whether the event loop can run during a commit. */
  readonly #hasCores: boolean;
  readonly #integrityOf: (secret: KeyObject) => Integrity;
  readonly #queue: WriteRequest[] = [];
  /** To queries, held until the last queued one was executed. */
  readonly #answers: WriteAnswer[] = [];
  #connection: DirectConnection | undefined;
  /** Runs queries on this connection. */
  #runner: QueryRunner | undefined;
  #integrity: Integrity | undefined;
  /** The event loop learns of a commit only after later ones have begun. */
  readonly #memory = new LogMemory();
  readonly #transaction: TransactionGuard;
  #isRunning = false;
  #lastWord: LastWord | undefined;
  /** Whether the last commit of events was quick. */
  #isQuick = true;

  /** Handles the requests that arrive at the port until `close`. `cores` is how many threads can run in parallel. */
  constructor(port: MessagePort, world: World, cores: number, integrityOf: (secret: KeyObject) => Integrity) {
    this.#port = port;
    this.#world = world;
    this.#hasCores = cores > 1;
    this.#integrityOf = integrityOf;
    this.#transaction = new TransactionGuard(world, () => this.#abandon());
    port.on('message', (requests: readonly WriteRequest[]) => {
      this.#queue.push(...requests);
      void this.#run();
    });
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      if (next.do !== 'append') await this.#handle(next);
      else {
        const before = this.#world.elapsed();
        await this.#append(next);
        await this.#gather(this.#world.elapsed() - before);
      }
      if (this.#lastWord !== undefined) this.#port.postMessage(this.#lastWord);
    }
    this.#isRunning = false;
  }

  /** Lets events join the next commit: those that have arrived, and after a slow commit those of returning clients. */
  async #gather(commitMs: number): Promise<void> {
    this.#isQuick = commitMs < slowCommitMs;
    await this.#world.turn();
    if (this.#isQuick || this.#queue[0]?.do !== 'append') return;
    await this.#world.sleep(Math.min(commitMs / gatheringShare, maxGatheringMs));
  }

  /** While a transaction is open, returns only its own requests, which are all but appends. */
  #next(): WriteRequest | undefined {
    if (!this.#transaction.isOpen) return this.#queue.shift();
    const at = this.#queue.findIndex((request) => request.do !== 'append');
    return at < 0 ? undefined : this.#queue.splice(at, 1)[0];
  }

  /** Rolls back a stalled transaction and handles the events that waited for it. */
  async #abandon(): Promise<void> {
    await this.#open.rollback();
    void this.#run();
  }

  async #handle(request: OtherRequest): Promise<void> {
    this.#transaction.heard();
    try {
      const result = await this.#execute(request);
      this.#answers.push({ id: request.id, result });
    } catch (error) {
      this.#answers.push({ id: request.id, failure: packError(error) });
      this.#failed(error);
    }
    if (!this.#isFollowed()) this.#answer(this.#answers.splice(0));
    if (request.do === 'close') this.#port.close();
  }

  /** Whether another query of the transaction is queued: one message then answers both. */
  #isFollowed(): boolean {
    if (!this.#transaction.isOpen) return false;
    return this.#queue.find((request) => request.do !== 'append')?.do === 'execute';
  }

  async #execute(
    order: Exclude<WriteOrder, { do: 'append' }>,
  ): Promise<StatementResult | boolean | undefined> {
    switch (order.do) {
      case 'open':
        this.#connection = openInPlace(order.path, this.#world);
        this.#runner = queryRunner(this.#connection);
        return undefined;
      case 'tag':
        this.#integrity = this.#integrityOf(order.secret);
        return undefined;
      case 'begin':
        await this.#open.begin();
        this.#transaction.begin();
        return undefined;
      case 'execute':
        this.#transaction.require();
        return this.#open.execute(order.sql, order.values);
      case 'commit':
        this.#transaction.require();
        await this.#open.commit();
        this.#transaction.end();
        return undefined;
      case 'rollback':
        this.#transaction.end();
        await this.#open.rollback();
        return undefined;
      case 'probe':
        await this.#open.requireWritable();
        return undefined;
      case 'checkpoint':
        return this.#open.checkpoint();
      case 'close':
        this.#transaction.close();
        await this.#connection?.close();
        return undefined;
    }
  }

  /** Commits these events and those queued right behind them. */
  async #append(first: AppendRequest): Promise<void> {
    const requests = [first, ...this.#takeSome(first.count)];
    let outcome: { readonly result: PackedEnd } | { readonly failure: ReturnType<typeof packError> };
    try {
      for (const { known } of requests) if (known !== undefined) this.#memory.learn(unpackEnd(known));
      const end = await this.#commit(requests.flatMap(({ events }) => unpackEvents(events)));
      this.#memory.learn(end);
      outcome = { result: packEnd(end) };
    } catch (error) {
      outcome = { failure: packError(error) };
      this.#failed(error);
    }
    this.#answer(requests.map(({ id }) => ({ id, ...outcome })));
  }

  /**
   * Takes the appends behind one of `count` events that share its commit: all, but only half of them on a fast disk.
   * The loop then responds to these while the rest is committed.
   */
  #takeSome(count: number): AppendRequest[] {
    const end = this.#queue.findIndex((request) => request.do !== 'append');
    const waiting = this.#queue.slice(0, end < 0 ? undefined : end) as AppendRequest[];
    const half = waiting.reduce((sum, request) => sum + request.count, count) / 2;
    const most = this.#isQuick && this.#hasCores ? Math.max(half, worthACommit) : maxEvents;
    let together = count;
    const others = waiting.findIndex((request) => {
      together += request.count;
      return together > Math.min(most, maxEvents);
    });
    return this.#queue.splice(0, others < 0 ? waiting.length : others) as AppendRequest[];
  }

  /** A Kysely transaction would take longer than SQLite itself. */
  async #commit(events: readonly NewAuditEvent[]): Promise<LogEnd> {
    const connection = this.#open;
    const runner = this.#runner as QueryRunner;
    await connection.begin();
    try {
      const writer = { ...runner, integrity: this.#integrity };
      const end = await insertAuditEvents(writer, events, this.#memory.end);
      await connection.commit();
      return end;
    } catch (error) {
      await connection.rollback();
      throw error;
    }
  }

  /** Ends the process once the contents of a lost log are saved: the next start creates a new log. */
  #failed(error: unknown): void {
    if (error instanceof LostLogError) this.#lastWord ??= { fatal: packError(error) };
  }

  get #open(): DirectConnection {
    if (this.#connection === undefined) throw notOpened();
    return this.#connection;
  }

  #answer(answers: readonly WriteAnswer[]): void {
    this.#port.postMessage(answers);
  }
}

function notOpened(): Error {
  return new Error('no database was opened');
}
