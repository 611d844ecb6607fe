/** The counter from which a table of a vault takes its ids, as someone sets it back who may write to the database. */
import { outside } from '../../harness/database/outside-database.ts';
import { databaseOf } from '../../harness/database/tested-engine.ts';

/** Makes `last` the highest id that the table has ever given; 0 is a table that has given none. */
export function setCounter(dataDir: string, table: string, last: number): void {
  outside(dataDir, (db) => {
    if (databaseOf(dataDir) === undefined) {
      db.prepare('update sqlite_sequence set seq = ? where name = ?').run(last, table);
    } else {
      const next = "select setval(pg_get_serial_sequence(?, 'id'), cast(? as bigint), false)";
      db.prepare(next).run(table, last + 1);
    }
  });
}
