/** The thread of `OutsideServer`: runs statements of a test, one at a time, while the test's thread waits. */
import { type MessagePort, workerData } from 'node:worker_threads';
import pg from 'pg';
import { postgresTypes } from '../../../src/db/postgres/postgres-types.ts';

type Question = { readonly text: string; readonly values?: readonly unknown[] } | 'end';
type Asked = { readonly connection: number; readonly url: string; readonly question: Question };

const { port, bell } = workerData as { port: MessagePort; bell: Int32Array };
const clients = new Map<number, pg.Client>();

port.on('message', async (asked: Asked) => {
  const answer = await answerTo(asked).catch((error: Error & { code?: string }) => ({
    error: { message: error.message, code: error.code },
  }));
  port.postMessage(answer);
  Atomics.store(bell, 0, 1);
  Atomics.notify(bell, 0);
});

async function answerTo({ connection, url, question }: Asked): Promise<unknown> {
  if (question === 'end') {
    await clients.get(connection)?.end();
    clients.delete(connection);
    return { rows: [], fields: [], changes: 0 };
  }
  const client = clients.get(connection) ?? (await connect(connection, url));
  const { text, values } = question;
  if (values === undefined) {
    await client.query(text);
    return { rows: [], fields: [], changes: 0 };
  }
  const { rows, fields, rowCount } = await client.query({
    text,
    values: values.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value)),
    types: postgresTypes,
    rowMode: 'array',
  });
  return { rows, fields: fields.map(({ name }) => name), changes: rowCount };
}

async function connect(connection: number, url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // A server that a test ends says so to idle connections; the next question finds out, too.
  client.on('error', () => undefined);
  await client.connect();
  clients.set(connection, client);
  return client;
}
