/**
 * The thread that writes: executes the transactions of the event loop, and commits the audit events that have arrived
 * meanwhile together, so that however slow the disk is, each event waits for two commits at most.
 */
import type { KeyObject } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import BetterSqlite3 from 'better-sqlite3';
import { Kysely } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import type { World } from '../../base/world.ts';
import { insertAuditEvents } from '../audit/audit-insertion.ts';
import type { Schema } from '../schema/schema.ts';
import { FileInPlace } from './file-in-place.ts';
import { writingDialect } from './sqlite-dialect.ts';
import type { StatementResult } from './sqlite-statements.ts';
import { storageErrorFrom } from './storage-error.ts';
import { DirectConnection, prepareForWriting } from './write-connection.ts';
import {
  countEvents,
  packError,
  unpackEvents,
  type WriteAnswer,
  type WriteOrder,
  type WriteRequest,
} from './write-messages.ts';

type AppendRequest = Extract<WriteRequest, { readonly do: 'append' }>;
type OtherRequest = Exclude<WriteRequest, AppendRequest>;

/** Bounds the time that a transaction takes. */
const mostEvents = 500;

/** After a commit of this length, waiting a part of it for more events costs less than another commit. */
const slowCommitMs = 4;
const gatheringShare = 8;
const longestGatheringMs = 5;

/** How long opening waits for the lock of another process. */
const openingPatienceMs = 5000;

export class WritingThread {
  readonly #port: MessagePort;
  readonly #world: World;
  readonly #integrityOf: (secret: KeyObject) => Integrity;
  readonly #queue: WriteRequest[] = [];
  #connection: DirectConnection | undefined;
  /** The same connection, for events. */
  #writer: Kysely<Schema> | undefined;
  #integrity: Integrity | undefined;
  #isInTransaction = false;
  #isRunning = false;

  /** Handles the requests that arrive at the port until one says `close`. */
  constructor(port: MessagePort, world: World, integrityOf: (secret: KeyObject) => Integrity) {
    this.#port = port;
    this.#world = world;
    this.#integrityOf = integrityOf;
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
        const before = this.#world.now();
        await this.#append(next);
        await this.#gather(this.#world.now() - before);
      }
    }
    this.#isRunning = false;
  }

  /** Lets events join the next commit: those that have arrived, and after a slow commit those of clients that come again. */
  async #gather(commitMs: number): Promise<void> {
    await this.#world.turn();
    if (commitMs < slowCommitMs || this.#queue[0]?.do !== 'append') return;
    await this.#world.sleep(Math.min(commitMs / gatheringShare, longestGatheringMs));
  }

  /** While a transaction is open, its own requests: they are the only ones that are no events. */
  #next(): WriteRequest | undefined {
    if (!this.#isInTransaction) return this.#queue.shift();
    const at = this.#queue.findIndex((request) => request.do !== 'append');
    return at < 0 ? undefined : this.#queue.splice(at, 1)[0];
  }

  async #handle(request: OtherRequest): Promise<void> {
    try {
      const result = await this.#execute(request);
      this.#answer([{ id: request.id, result }]);
    } catch (error) {
      this.#answer([{ id: request.id, failure: packError(error) }]);
    }
    if (request.do === 'close') this.#port.close();
  }

  async #execute(
    order: Exclude<WriteOrder, { do: 'append' }>,
  ): Promise<StatementResult | boolean | undefined> {
    switch (order.do) {
      case 'open':
        this.#connection = opened(order.path, this.#world);
        this.#writer = new Kysely<Schema>({ dialect: writingDialect(this.#connection) });
        return undefined;
      case 'tag':
        this.#integrity = this.#integrityOf(order.secret);
        return undefined;
      case 'begin':
        await this.#open.begin();
        this.#isInTransaction = true;
        return undefined;
      case 'execute':
        return this.#open.execute(order.sql, order.values);
      case 'commit':
        await this.#open.commit();
        this.#isInTransaction = false;
        return undefined;
      case 'rollback':
        this.#isInTransaction = false;
        await this.#open.rollback();
        return undefined;
      case 'probe':
        await this.#open.requireWritable();
        return undefined;
      case 'checkpoint':
        return this.#open.checkpoint();
      case 'close':
        await this.#connection?.close();
        return undefined;
    }
  }

  /** Commits these events and those that wait right behind them. */
  async #append(first: AppendRequest): Promise<void> {
    const requests = [first];
    let count = countEvents(first.events);
    while (count < mostEvents && this.#queue[0]?.do === 'append') {
      const next = this.#queue.shift() as AppendRequest;
      requests.push(next);
      count += countEvents(next.events);
    }
    const events = requests.flatMap((request) => unpackEvents(request.events));
    const integrity = this.#integrity;
    let outcome: { readonly result: undefined } | { readonly failure: ReturnType<typeof packError> };
    try {
      if (this.#writer === undefined) throw notOpened();
      await this.#writer
        .transaction()
        .execute((writer) => insertAuditEvents(Object.assign(writer, { integrity }), events));
      outcome = { result: undefined };
    } catch (error) {
      outcome = { failure: packError(error) };
    }
    this.#answer(requests.map(({ id }) => ({ id, ...outcome })));
  }

  get #open(): DirectConnection {
    if (this.#connection === undefined) throw notOpened();
    return this.#connection;
  }

  #answer(answers: readonly WriteAnswer[]): void {
    this.#port.postMessage(answers);
  }
}

/** The file was opened, migrated and set to WAL by the main thread, which keeps a connection to it. */
function opened(path: string, world: World): DirectConnection {
  try {
    const database = new BetterSqlite3(path, { fileMustExist: true, timeout: openingPatienceMs });
    prepareForWriting(database);
    const connection = new DirectConnection(database, world, new FileInPlace(path, world));
    connection.beImpatient();
    return connection;
  } catch (error) {
    throw storageErrorFrom(error, path);
  }
}

function notOpened(): Error {
  return new Error('no database was opened');
}
