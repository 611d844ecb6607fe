/** Inserts and updates, compiled once for each set of columns that the code gives them: see compiled-query.ts. */
import { type Expression, sql } from 'kysely';
import { type Builder, compiledQuery, type QueryRunner, type Value } from './compiled-query.ts';
import type { Schema } from './schema/schema.ts';

type Change = Readonly<Record<string, unknown>>;

type Statement<Row> = (runner: QueryRunner, ...values: Value[]) => Promise<Row[]>;

/**
 * Adds a row to this table, and returns what `returning` names of it; each row must have the same columns as others of
 * its kind.
 */
export function compiledInsert<Row>(
  table: keyof Schema,
  returning: 'id' | 'all' | 'nothing',
): (runner: QueryRunner, row: Change) => Promise<Row | undefined> {
  const statementOf = byColumns<Row>((columns) =>
    compiledQuery((db: Builder, ...values: Expression<Value>[]) => {
      const insert = db
        .insertInto(table)
        .columns(columns as never)
        .expression(sql`values (${sql.join(values)})` as never);
      if (returning === 'nothing') return insert as never;
      return (returning === 'all' ? insert.returningAll() : insert.returning('id' as never)) as never;
    }),
  );
  return async (runner, row) => {
    const [columns, values] = partsOf(row);
    return (await statementOf(columns)(runner, ...values))[0];
  };
}

/** Changes the row of this table with these values in `where`; returns whether there is one. */
export function compiledUpdate(
  table: keyof Schema,
  where: readonly string[],
): (runner: QueryRunner, changes: Change, ...conditions: Value[]) => Promise<boolean> {
  const statementOf = byColumns<unknown>((columns) =>
    compiledQuery((db: Builder, ...values: Expression<Value>[]) => {
      const changes = Object.fromEntries(columns.map((column, at) => [column, values[at]]));
      let update = db.updateTable(table).set(changes as never);
      for (const [at, column] of where.entries())
        update = update.where(column as never, '=', values[columns.length + at] as never);
      return update.returning(where as never) as never;
    }),
  );
  return async (runner, changes, ...conditions) => {
    const [columns, values] = partsOf(changes);
    return (await statementOf(columns)(runner, ...values, ...conditions)).length > 0;
  };
}

/** Columns without a value keep their default or what they have. */
function partsOf(change: Change): [columns: string[], values: Value[]] {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return [given.map(([column]) => column), given.map(([, value]) => value as Value)];
}

/** The columns are written in the code, so there are few sets of them. */
function byColumns<Row>(
  compile: (columns: readonly string[]) => Statement<Row>,
): (columns: readonly string[]) => Statement<Row> {
  const known = new Map<string, Statement<Row>>();
  return (columns) => {
    const key = columns.join();
    const statement = known.get(key) ?? compile(columns);
    known.set(key, statement);
    return statement;
  };
}
