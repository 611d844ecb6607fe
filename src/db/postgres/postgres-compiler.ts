/** Compiles queries for PostgreSQL, including the expressions that each engine writes in its own SQL. */
import {
  type BinaryOperationNode,
  type FunctionNode,
  type OperationNode,
  OperatorNode,
  PostgresQueryCompiler,
  PrimitiveValueListNode,
  ValueListNode,
} from 'kysely';
import { type EngineSql, inEngineSql } from '../engine-sql.ts';

const engine: EngineSql = {
  steadyValue: ['', ''],
  // The planner compares indexes by their cost, and knows what the rows contain.
  withoutIndex: ['', ''],
  containsText: ['(strpos(', ', ', ') > 0)'],
  smallerOf: ['least(', ', ', ')'],
  numbersIn: [
    '(select cast(value as bigint) from json_array_elements_text(cast(',
    ' as json)) as list (value))',
  ],
  jsonPairs: ['coalesce(cast(json_agg(json_build_array(', ', ', ")) as text), '[]')"],
  // Events are numbered from the mark of the log, which stays when they are deleted.
  assignedIds: [
    `(select * from (
      select 'audit_events' as name, greatest(max(id), (select
        cast(split_part(value #>> '{}', ' ', 1) as bigint) from settings where key = 'audit-mark')) as seq from audit_events
      union all select 'certificate_versions', max(id) from certificate_versions) as highest where seq > 0)`,
  ],
  sameWithoutCase: ['(lower(', ') = lower(', '))'],
  largeNumber: ['cast(', ' as bigint)'],
  storedText: ['to_jsonb(cast(', ' as text))'],
  storedNumber: ['to_jsonb(cast(', ' as bigint))'],
  storedBytes: ["jsonb_build_object('bytes', encode(cast(", " as bytea), 'hex'))"],
};

export class PostgresCompiler extends PostgresQueryCompiler {
  protected override visitFunction(node: FunctionNode): void {
    const own = inEngineSql(node, engine);
    if (own === undefined) super.visitFunction(node);
    else this.visitRaw(own);
  }

  /** PostgreSQL has no empty lists. */
  protected override visitBinaryOperation(node: BinaryOperationNode): void {
    const operator = OperatorNode.is(node.operator) ? node.operator.operator : undefined;
    if (operator === 'in' && isEmptyList(node.rightOperand)) this.append('false');
    else if (operator === 'not in' && isEmptyList(node.rightOperand)) this.append('true');
    else super.visitBinaryOperation(node);
  }
}

function isEmptyList(node: OperationNode): boolean {
  return (PrimitiveValueListNode.is(node) || ValueListNode.is(node)) && node.values.length === 0;
}
