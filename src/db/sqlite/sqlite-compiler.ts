/** Compiles queries for SQLite, including the expressions that each engine writes in its own SQL. */
import { type FunctionNode, SqliteQueryCompiler } from 'kysely';
import { type EngineSql, inEngineSql } from '../engine-sql.ts';

const engine: EngineSql = {
  // The same value as a bare `?`, for which SQLite would prepare the plan of a query with left joins again each time it is
  // bound. That takes thirty times as long as the result.
  steadyValue: ['+', ''],
  // The planner uses no index for an expression that is not a bare column.
  withoutIndex: ['+', ''],
  containsText: ['(instr(', ', ', ') > 0)'],
  smallerOf: ['min(', ', ', ')'],
  numbersIn: ['(select value from json_each(', '))'],
  jsonPairs: ['json_group_array(json_array(', ', ', '))'],
  assignedIds: ['sqlite_sequence'],
  // The column has a collation that does this.
  sameWithoutCase: ['(', ' = ', ')'],
  // After a cast no index would be used.
  largeNumber: ['', ''],
  storedText: ['', ''],
  storedNumber: ['', ''],
  storedBytes: ['', ''],
};

export class SqliteCompiler extends SqliteQueryCompiler {
  protected override visitFunction(node: FunctionNode): void {
    const own = inEngineSql(node, engine);
    if (own === undefined) super.visitFunction(node);
    else this.visitRaw(own);
  }
}
