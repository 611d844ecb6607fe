/** A second engine beside SQLite, for tests: it writes the same expressions in the SQL of PostgreSQL. */
import { type FunctionNode, PostgresQueryCompiler } from 'kysely';
import { type EngineSql, inEngineSql } from '../../src/db/engine-sql.ts';

const engine: EngineSql = {
  steadyValue: ['', ''],
  withoutIndex: ['', ''],
  containsText: ['(strpos(', ', ', ') > 0)'],
  smallerOf: ['least(', ', ', ')'],
  numbersIn: [
    '(select cast(value as bigint) from json_array_elements_text(cast(',
    ' as json)) as list (value))',
  ],
  jsonPairs: ['coalesce(cast(json_agg(json_build_array(', ', ', ")) as text), '[]')"],
  assignedIds: [
    "(select split_part(sequencename, '_id_seq', 1) as name, last_value as seq from pg_sequences)",
  ],
};

export class SecondCompiler extends PostgresQueryCompiler {
  protected override visitFunction(node: FunctionNode): void {
    const own = inEngineSql(node, engine);
    if (own === undefined) super.visitFunction(node);
    else this.visitRaw(own);
  }
}
