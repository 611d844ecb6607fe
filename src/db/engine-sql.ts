/**
 * Expressions for which the engines have no common SQL. Queries say what they mean, and the query compiler of each
 * engine writes them in its own SQL (`EngineSql`): one process may have databases of several engines.
 */
import {
  type Expression,
  ExpressionWrapper,
  FunctionNode,
  type OperationNode,
  RawNode,
  ValueNode,
} from 'kysely';
import type { Schema } from './schema/schema.ts';

/** The SQL of one engine for each expression: the texts before, between and after its arguments. */
export type EngineSql = {
  readonly steadyValue: readonly [string, string];
};

/** The node to compile instead of `node`, if it is one of these expressions. */
export function inEngineSql(node: FunctionNode, engine: EngineSql): RawNode | undefined {
  if (!Object.hasOwn(engine, node.func)) return undefined;
  return RawNode.create(engine[node.func as keyof EngineSql], node.arguments);
}

/** A bound value that must not make the engine plan the query again when it changes. */
export function steadyValue<T>(value: unknown): Expression<T> {
  return expression('steadyValue', ValueNode.create(value));
}

function expression<T>(name: keyof EngineSql, ...args: OperationNode[]): ExpressionWrapper<Schema, never, T> {
  return new ExpressionWrapper(FunctionNode.create(name, args));
}
