/**
 * Generates values from JSON Schemas that are valid, almost valid or hostile. The schema defines the shape; `plausible`
 * adds values that exist in the vault, so that requests also pass validation.
 */
import fc, { type Arbitrary } from 'fast-check';

export type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly const?: unknown;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
};

/** Meaningful values by the name of the member, at any depth. */
export type Words = Readonly<Record<string, readonly unknown[]>>;

const mark = '\uFEFF';

/** Texts that some parser, file system, shell, log or database has handled wrongly. */
export const hostileTexts: readonly string[] = [
  ...['', ' ', '\t', '\n', '\r\n', '\0', 'www\0', 'www\n', ' www', 'www ', 'WWW', 'Www', 'www.', '.www'],
  ...['.', '..', '../..', '../../../../etc/passwd', '..\\..\\boot.ini', '/etc/passwd', '~', '~root', '-'],
  ...['--help', '-rf', '*', '%', '_', "' OR 1=1 --", '"; DROP TABLE api_keys; --', '`id`', '$(id)', '$HOME'],
  ...['{{7*7}}', '<script>alert(1)</script>', '=1+1', '@SUM(1)', '%s%n', '%00', '%2e%2e%2f', '\\u0000'],
  ...[
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'hasOwnProperty',
    'null',
    'undefined',
    'NaN',
    'true',
  ],
  ...['0', '-0', '-1', '1e309', '0x10', '1_000', '٣', '９', '9007199254740993', '1'.repeat(400)],
  ...[
    'é',
    'e\u0301',
    'ﬀ',
    'İ',
    'ß',
    'ＷＷＷ',
    'wwẇ',
    '\u202ewww',
    'w\u200bww',
    `${mark}www`,
    '😀',
    '\ud800',
    '\udc00w',
  ],
  ...['a'.repeat(64), 'a'.repeat(129), 'a'.repeat(256), 'é'.repeat(300), 'a'.repeat(5000), 'a.'.repeat(130)],
  ...['2030-02-30T00:00:00Z', '9999-12-31T23:59:60Z', '0000-01-01T00:00:00Z', '+275760-09-13T00:00:00Z'],
  ...[
    '[::1]',
    '::ffff:127.0.0.1',
    '256.256.256.256',
    'xn--',
    'xn--a.xn--b',
    'a..b',
    '*.*',
    '*',
    'file:///etc/passwd',
  ],
];

/** A hostile text, or any text. */
export const anyText: Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...hostileTexts) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);

const hostileNumbers = [
  ...[0, -0, -1, 1, 1.5, 1e15, 2 ** 31, 2 ** 31 - 1, -(2 ** 31), 2 ** 32, 2 ** 53, 2 ** 53 - 1, 2 ** 63],
  ...[1e308, 5e-324, 0.1],
];

/**
 * JSON texts that no JavaScript value produces. A value contains a placeholder, which `jsonText` replaces with the raw
 * text.
 */
const rawScraps: readonly string[] = [
  ...['1e999', '-1e999', '-0', '1'.repeat(400), '0.'.concat('0'.repeat(400), '1'), '"\\ud800"', '"\\u0000"'],
  ...['{"a":1,"a":2}', '{"__proto__":{"__proto__":null}}', '{"constructor":{"prototype":{"polluted":true}}}'],
  ...[`${'['.repeat(60_000)}${']'.repeat(60_000)}`, `${'{"a":'.repeat(60_000)}1${'}'.repeat(60_000)}`],
];
const rawMark = '\u0001raw scrap ';

/** The JSON text of a value that may contain placeholders for raw texts. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /"\\u0001raw scrap (\d+)"/g,
    (_, index) => rawScraps[Number(index)] ?? '',
  );
}

/** Any JSON, including JSON that matches no schema. */
export const anyJson: Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: anyText },
  { weight: 2, arbitrary: fc.constantFrom<unknown>(...hostileNumbers) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(null, true, false, [], {}, [[]], [null], [{}], { a: { b: [] } }),
  },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  { weight: 1, arbitrary: fc.nat(rawScraps.length - 1).map((index) => `${rawMark}${index}`) },
  { weight: 1, arbitrary: fc.constantFrom(50, 500, 5000).map((depth) => nested(depth)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(101, 2000).map((length) => Array.from({ length }, () => 'a.example.test')),
  },
);

/** A value nested in `depth` arrays. */
function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

/** Valid values for the schema; `name` is that of the member. Throws for an unsupported schema. */
export function valid(schema: Schema, words: Words, name = ''): Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map((one) => valid(one, words, name)));
  if (Array.isArray(schema.type)) {
    return fc.oneof(...schema.type.map((type: string) => valid({ ...schema, type }, words, name)));
  }
  const known = words[name];
  switch (schema.type) {
    case 'object':
      if (known !== undefined) return fc.constantFrom(...known);
      return members(schema, words);
    case 'array': {
      const { items = {}, minItems = 0, maxItems = 100 } = schema;
      return fc.array(valid(items, words, name), { minLength: minItems, maxLength: Math.min(maxItems, 3) });
    }
    case 'string':
      if (known === undefined) return text(schema);
      // Mostly meaningful values, because one random member of a dozen makes the whole value invalid.
      return fc.oneof(
        { weight: 15, arbitrary: fc.constantFrom(...known) },
        { weight: 1, arbitrary: text(schema) },
      );
    case 'integer': {
      const { minimum = 0, maximum = Number.MAX_SAFE_INTEGER } = schema;
      return fc.oneof(fc.integer({ min: minimum, max: minimum + 12 }), fc.constantFrom(minimum, maximum));
    }
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    default:
      throw new Error(`unsupported schema ${JSON.stringify(schema)}`);
  }
}

function members({ properties = {}, required = [] }: Schema, words: Words): Arbitrary<unknown> {
  const model = Object.entries(properties).map(
    ([name, schema]) => [name, valid(schema, words, name)] as const,
  );
  return fc.record(Object.fromEntries(model), { requiredKeys: [...required], noNullPrototype: true });
}

function text({ pattern, minLength = 0, maxLength = 60 }: Schema): Arbitrary<string> {
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' });
  return fc.oneof(
    fc.string({ minLength, maxLength: Math.min(maxLength, 60) }),
    fc.constantFrom(...hostileTexts).filter(({ length }) => length >= minLength && length <= maxLength),
  );
}

/** The value with one error: an extra or missing member, or another value somewhere inside. */
export function spoiled(value: Arbitrary<unknown>): Arbitrary<unknown> {
  const kinds = fc.constantFrom('replace', 'replace', 'remove', 'add', 'twice');
  const keys = fc.constantFrom(
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'x',
    '',
    'length',
    'Name',
  );
  return fc
    .tuple(value, kinds, keys, fc.nat(), anyJson)
    .map(([whole, kind, key, at, other]) => changed(whole, kind, { key, at, other }));
}

function changed(
  value: unknown,
  kind: string,
  change: { readonly key: string; readonly at: number; readonly other: unknown },
): unknown {
  const { key, at, other } = change;
  if (typeof value !== 'object' || value === null) return other;
  const entries = Object.entries(value);
  const place = entries.length === 0 ? 0 : at % entries.length;
  // Descends with a probability of one half per level, so that errors occur at the root and in the leaves.
  const [name, inner] = entries[place] ?? ['', undefined];
  if (typeof inner === 'object' && inner !== null && at % 2 === 0) {
    const next = { ...change, at: Math.floor(at / 2) };
    return rebuilt(value, entries.with(place, [name, changed(inner, kind, next)]));
  }
  if (kind === 'remove') return rebuilt(value, entries.toSpliced(place, 1));
  if (kind === 'add') return rebuilt(value, [...entries, [key, other]]);
  if (kind === 'twice') return rebuilt(value, [...entries, [`${name} `, inner]]);
  return entries.length === 0 ? other : rebuilt(value, entries.with(place, [name, other]));
}

function rebuilt(like: object, entries: readonly (readonly [string, unknown])[]): unknown {
  if (Array.isArray(like)) return entries.map(([, value]) => value);
  // `fromEntries` defines members, so that `__proto__` is an ordinary one and is sent.
  return Object.fromEntries(entries);
}
