/** A second engine beside SQLite, for tests: it writes the same expressions in the SQL of PostgreSQL. */
import { type FunctionNode, PostgresQueryCompiler } from 'kysely';
import { type EngineSql, inEngineSql } from '../../src/db/engine-sql.ts';

const engine: EngineSql = {
  steadyValue: ['', ''],
};

export class SecondCompiler extends PostgresQueryCompiler {
  protected override visitFunction(node: FunctionNode): void {
    const own = inEngineSql(node, engine);
    if (own === undefined) super.visitFunction(node);
    else this.visitRaw(own);
  }
}
