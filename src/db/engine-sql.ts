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
  sql,
  ValueNode,
} from 'kysely';
import type { Schema } from './schema/schema.ts';

type Texts<Arguments extends 0 | 1 | 2> = [
  readonly [string],
  readonly [before: string, after: string],
  readonly [before: string, between: string, after: string],
][Arguments];

/** The SQL of one engine for each expression: the texts before, between and after its arguments. */
export type EngineSql = {
  readonly steadyValue: Texts<1>;
  readonly withoutIndex: Texts<1>;
  readonly containsText: Texts<2>;
  readonly smallerOf: Texts<2>;
  readonly numbersIn: Texts<1>;
  readonly jsonPairs: Texts<2>;
  readonly assignedIds: Texts<0>;
  readonly sameWithoutCase: Texts<2>;
  readonly largeNumber: Texts<1>;
  readonly storedText: Texts<1>;
  readonly storedNumber: Texts<1>;
  readonly storedBytes: Texts<1>;
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

/** A column in a condition or an order that no index of the column should answer, because another one is better. */
export function withoutIndex<T>(column: string): Expression<T> {
  return expression('withoutIndex', sql.ref(column).toOperationNode());
}

/** Whether the text contains the part, with the same case. */
export function containsText(text: Expression<string>, part: string): Expression<boolean> {
  return expression('containsText', text.toOperationNode(), ValueNode.create(part));
}

/** The smaller of two numbers, neither of which may be null. */
export function smallerOf(one: Expression<unknown>, other: Expression<unknown>): Expression<number> {
  return expression('smallerOf', one.toOperationNode(), other.toOperationNode());
}

/** The right side of `in`: any number of values as one bound value, so that the text of the query stays the same. */
export function numbersIn(values: readonly number[]): Expression<number> {
  return expression('numbersIn', ValueNode.create(JSON.stringify(values)));
}

/** The JSON text of an array with a pair of these columns for each row of the group; `[]` without rows. */
export function jsonPairs(one: string, other: string): Expression<string> {
  return expression('jsonPairs', sql.ref(one).toOperationNode(), sql.ref(other).toOperationNode());
}

/** A table with the highest id (`seq`) that each table (`name`) ever assigned, even if that row is gone. */
export function assignedIds(): Expression<{ readonly name: string; readonly seq: number }> {
  return expression('assignedIds');
}

/** Whether the column, which is unique without regard to case, has this value but for the case. */
export function sameWithoutCase(column: string, value: string): Expression<boolean> {
  return expression('sameWithoutCase', sql.ref(column).toOperationNode(), ValueNode.create(value));
}

/** A bound number that may need more than 32 bits where nothing beside it says so. */
export function largeNumber(value: number): Expression<number> {
  return expression('largeNumber', ValueNode.create(value));
}

/** A value as the column of the settings keeps it, which says by itself whether it is a text, a number or bytes. */
export function storedValue(value: string | number | Buffer | Expression<string>): Expression<never> {
  if (typeof value === 'string') return expression('storedText', ValueNode.create(value));
  if (typeof value === 'number') return expression('storedNumber', ValueNode.create(value));
  if (Buffer.isBuffer(value)) return expression('storedBytes', ValueNode.create(value));
  return expression('storedText', value.toOperationNode());
}

function expression<T>(name: keyof EngineSql, ...args: OperationNode[]): ExpressionWrapper<Schema, never, T> {
  return new ExpressionWrapper(FunctionNode.create(name, args));
}
