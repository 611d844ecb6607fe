/**
 * Rows that a client writes to a PostgreSQL cluster through all that happens to it, and whether those acknowledged are
 * there.
 */
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Cluster } from './patroni-cluster.ts';

/** A connection. It may be cut while it rests, which its next query tells. */
export async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** The rows of one query on a connection of its own. */
export async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = await connected(url);
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

export type Writer = { readonly acknowledged: number[]; readonly stop: () => Promise<void> };

/**
 * Creates the table `kept` and inserts rows into it through the proxy, one after another, on a new connection after
 * each failure, until it is stopped or the test ends.
 */
export async function startWriter(t: Pick<TestContext, 'after'>, { url }: Cluster): Promise<Writer> {
  await query(url, 'create table kept (id int primary key)');
  const acknowledged: number[] = [];
  let stopped = false;
  const write = async () => {
    let client: pg.Client | undefined;
    for (let id = 1; !stopped; id += 1) {
      try {
        client ??= await connected(url);
        await client.query('insert into kept values ($1)', [id]);
        acknowledged.push(id);
        // As fast as it can, it would leave the members little of the machine.
        await sleep(2);
      } catch {
        // Not acknowledged: it may be there or not.
        await client?.end().catch(() => undefined);
        client = undefined;
        await sleep(20);
      }
    }
    await client?.end();
  };
  const written = write();
  const stop = async () => {
    stopped = true;
    await written;
  };
  t.after(stop);
  return { acknowledged, stop };
}

/** Waits until rows are acknowledged that were not yet when it was called. */
export async function moreRows({ acknowledged }: Writer): Promise<void> {
  const before = acknowledged.length;
  while (acknowledged.length < before + 20) await sleep(10);
}

/** The acknowledged rows that this member does not have. */
export async function missingRows(
  cluster: Cluster,
  member: string,
  { acknowledged }: Writer,
): Promise<number[]> {
  const rows = await query(cluster.directUrl(member), 'select id from kept');
  const found = new Set(rows.map(({ id }) => id));
  return acknowledged.filter((id) => !found.has(id));
}
