/** SQLite operations on a whole database. */
import { sql } from 'kysely';
import type { WholeDatabase } from '../engine.ts';
import { movedSentence } from '../schema/moved-vault.ts';
import { keptTables, numberedTables } from '../schema/table-list.ts';

const changes = ['insert', 'update', 'delete'] as const;

const triggers = keptTables.flatMap(([table]) =>
  changes.map((change) => ({ name: `${table}_moved_${change}`, on: `before ${change} on ${table}` })),
);

export const wholeSqlite: WholeDatabase = {
  // Transactions hold the write lock from the start.
  lock: async () => undefined,

  assignedIds: async (reader) => {
    const { rows } = await sql<{ readonly name: string; readonly seq: number }>`
      select name, seq from sqlite_sequence`.execute(reader);
    return new Map(rows.map(({ name, seq }) => [name, seq]));
  },

  setAssignedIds: async (writer, ids) => {
    await sql`delete from sqlite_sequence`.execute(writer);
    for (const table of numberedTables) {
      const id = ids.get(table);
      if (id !== undefined) {
        await sql`insert into sqlite_sequence (name, seq) values (${table}, ${id})`.execute(writer);
      }
    }
  },

  forbidWrites: async (writer) => {
    for (const { name, on } of triggers) {
      await sql
        .raw(`create trigger ${name} ${on} begin select raise(abort, '${movedSentence}'); end`)
        .execute(writer);
    }
  },

  allowWrites: async (writer) => {
    for (const { name } of triggers) await sql.raw(`drop trigger if exists ${name}`).execute(writer);
  },
};
