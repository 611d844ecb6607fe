/**
 * How values of PostgreSQL become those of JavaScript: the same that SQLite returns, so that queries need not know.
 * What is not listed stays text, also JSON.
 */

type Parser = (text: string) => unknown;

const parsers = new Map<number, Parser>([
  // bool
  [16, (text) => (text === 't' ? 1 : 0)],
  // bytea
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  // int8, int2, int4, oid
  [20, safeInteger],
  [21, Number],
  [23, Number],
  [26, Number],
  // float4, float8
  [700, Number],
  [701, Number],
  [3802, storedValueIn],
  // numeric, which sum() of int8 returns
  [1700, (text) => (text.includes('.') ? Number(text) : safeInteger(text))],
]);

/** For the option `types` of `pg`. Throws RangeError for integers that a number cannot hold. */
export const postgresTypes = {
  getTypeParser: (oid: number, format?: string): Parser => {
    if (format === 'binary') throw new Error('values are read as text');
    return parsers.get(oid) ?? ((text) => text);
  },
};

/** What `storedValue` (engine-sql.ts) wrote as jsonb. */
function storedValueIn(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== 'object' || value === null || !('bytes' in value)) return value;
  return Buffer.from(String(value.bytes), 'hex');
}

/** The text without U+0000, which texts of PostgreSQL cannot contain. */
export function storable(text: string): string {
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text;
}

/** A value of a query as the driver sends it. */
export function sentValue(value: unknown): unknown {
  return typeof value === 'string' ? storable(value) : value;
}

function safeInteger(text: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value)) return value;
  throw new RangeError(`the database holds a number that is too large (${text.length} digits)`);
}
