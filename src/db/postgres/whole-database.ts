/** What PostgreSQL does to a database as a whole. */
import { type Kysely, sql } from 'kysely';
import type { WholeDatabase } from '../engine.ts';
import { assignedIds } from '../engine-sql.ts';
import { movedSentence } from '../schema/moved-vault.ts';
import type { Schema } from '../schema/schema.ts';
import { keptTables, numberedTables } from '../schema/table-list.ts';

// The settings first: transactions of nodes lock a row of them before anything else, so no two wait for each other.
const tables = keptTables.map(([name]) => name).join(', ');

/** A copy takes as long as it takes, and its two transactions wait for each other. */
const patience = [
  'set local statement_timeout = 0',
  'set local idle_in_transaction_session_timeout = 0',
] as const;

export const wholePostgres: WholeDatabase = {
  lock: async (writer) => {
    await bePatient(writer);
    // Others can read, but neither write nor lock rows.
    await sql.raw(`lock table ${tables} in exclusive mode`).execute(writer);
  },

  assignedIds: async (reader) => {
    const names = sql.join(numberedTables.map((name) => sql`(cast(${name} as text))`));
    const { rows } = await sql<{ readonly name: string; readonly seq: number | null }>`
      select name, pg_sequence_last_value(cast(pg_get_serial_sequence(name, 'id') as regclass)) as seq
      from (values ${names}) as list (name)
      union all select name, seq from ${assignedIds()} as ids where seq > 0`.execute(reader);
    const ids = new Map<string, number>();
    for (const { name, seq } of rows) {
      if (seq !== null) ids.set(name, Math.max(seq, ids.get(name) ?? 0));
    }
    return ids;
  },

  setAssignedIds: async (writer, ids) => {
    for (const table of numberedTables) {
      const id = ids.get(table);
      if (id === undefined || id < 1) continue;
      await sql`select setval(cast(pg_get_serial_sequence(${table}, 'id') as regclass), ${id})`.execute(
        writer,
      );
    }
  },

  forbidWrites: async (writer) => {
    await sql
      .raw(`create function refuse_moved() returns trigger language plpgsql as $$
        begin raise exception '${movedSentence}' using errcode = 'object_not_in_prerequisite_state'; end $$`)
      .execute(writer);
    for (const [table] of keptTables) {
      await sql
        .raw(`create trigger ${table}_moved before insert or update or delete on ${table}
          for each statement execute function refuse_moved()`)
        .execute(writer);
    }
  },

  allowWrites: async (writer) => {
    await sql.raw('drop function if exists refuse_moved cascade').execute(writer);
  },
};

/** For the rest of the transaction. */
export async function bePatient(transaction: Kysely<Schema>): Promise<void> {
  for (const statement of patience) await sql.raw(statement).execute(transaction);
}
