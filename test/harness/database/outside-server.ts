/**
 * A database on a server, for tests that read and change it as another process: without promises, as better-sqlite3.
 * What SQLite writes differently is translated.
 */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { OutsideDatabase, OutsideStatement } from './outside-database.ts';

type Thread = { readonly port: MessagePort; readonly bell: Int32Array };

let thread: Thread | undefined;
let connections = 0;

/** All connections of a test process are on one thread, because starting one takes longer than most questions. */
function startThread(): Thread {
  const { port1: port, port2 } = new MessageChannel();
  const bell = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(new URL('./database-thread.ts', import.meta.url), {
    workerData: { port: port2, bell },
    transferList: [port2],
  });
  worker.unref();
  port.unref();
  return { port, bell };
}

/** Rejected statements throw with the message and the code of the server. */
export class OutsideServer implements OutsideDatabase {
  readonly #url: string;
  readonly #connection = ++connections;

  constructor(url: string) {
    this.#url = url;
  }

  prepare(sql: string): OutsideStatement {
    return this.#statement(sql, (row, fields) =>
      Object.fromEntries(fields.map((name, at) => [name, row[at]])),
    );
  }

  exec(sql: string): void {
    this.#ask({ text: inItsSql(sql) });
  }

  close(): void {
    this.#ask('end');
  }

  #statement(sql: string, shape: (row: unknown[], fields: string[]) => unknown): OutsideStatement {
    const run = (values: unknown[]) => this.#ask({ text: numbered(inItsSql(sql)), values: values.flat() });
    const all = (values: unknown[]) => {
      const { rows, fields } = run(values);
      return rows.map((row) => shape(row.map(received), fields));
    };
    return {
      all: (...values) => all(values),
      get: (...values) => all(values)[0],
      run: (...values) => ({ changes: run(values).changes }),
      pluck: () => this.#statement(sql, (row) => row[0]),
      raw: () => this.#statement(sql, (row) => row),
    };
  }

  #ask(question: { text: string; values?: unknown[] } | 'end') {
    thread ??= startThread();
    const { port, bell } = thread;
    Atomics.store(bell, 0, 0);
    port.postMessage({ connection: this.#connection, url: this.#url, question });
    for (;;) {
      const received = receiveMessageOnPort(port)?.message;
      if (received?.error !== undefined)
        throw Object.assign(new Error(received.error.message), received.error);
      if (received !== undefined) return received as { rows: unknown[][]; fields: string[]; changes: number };
      Atomics.wait(bell, 0, 0, 60_000);
    }
  }
}

/** Between threads a Buffer becomes a plain array of bytes. */
function received(value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.length) : value;
}

/** `?` is `$1`, `$2` … there. */
function numbered(sql: string): string {
  let count = 0;
  return sql.replaceAll('?', () => `$${++count}`);
}

function inItsSql(sql: string): string {
  return sql
    .replaceAll(/\bx'([0-9a-f]*)'/gi, "'\\x$1'::bytea")
    .replaceAll(/\bzeroblob\((\d+)\)/g, "decode(repeat('00', $1), 'hex')")
    .replaceAll(/cast\((\w+) \|\| ('\\x[0-9a-f]*'::bytea) as blob\)/g, '($1 || $2)');
}
