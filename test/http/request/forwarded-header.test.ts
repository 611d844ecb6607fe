/** `Forwarded` (RFC 7239) as written and as parsed, regardless of what precedes the last proxy's element. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { forwardedElements } from '../../../src/http/request/forwarded-header.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * A value as a proxy writes it: a token where it can be one, else quoted, with escapes where they are needed or not.
 */
function written(value: string, isQuoted: boolean): string {
  if (!isQuoted && token.test(value)) return value;
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}

const value = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'",;=\\ []:'),
    fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
  ),
  maxLength: 12,
});
const element = fc.record({
  for: fc.option(value, { nil: undefined }),
  proto: fc.option(value, { nil: undefined }),
  other: fc.option(value, { nil: undefined }),
  isQuoted: fc.boolean(),
  upper: fc.boolean(),
  gap: fc.constantFrom('', ' ', '\t', ' ; '),
});

function text(one: typeof element extends fc.Arbitrary<infer Value> ? Value : never): string {
  const pairs = (['for', 'other', 'proto'] as const).flatMap((name) => {
    const said = one[name];
    return said === undefined
      ? []
      : [`${one.upper ? name.toUpperCase() : name}=${written(said, one.isQuoted)}`];
  });
  return pairs.join(`;${one.gap}`) + one.gap.replace(';', '');
}

test('forwardedElements returns the values that proxies wrote, the last proxy first', () => {
  const property = fc.property(fc.array(element, { maxLength: 5 }), (all) => {
    const said = all.filter(
      (one) => one.for !== undefined || one.proto !== undefined || one.other !== undefined,
    );
    const read = [...forwardedElements(said.map(text).join(','))];
    assert.deepEqual(
      read,
      said.toReversed().map((one) => ({ for: one.for, proto: one.proto })),
    );
  });
  fc.assert(property, fuzzRuns(1000));
});

test('forwardedElements returns the values of the last proxy after arbitrary text of the client', () => {
  const property = fc.property(
    fc.string({ unit: fc.constantFrom(...'",;=\\ for'), maxLength: 40 }),
    element,
    (client, last) => {
      if (last.for === undefined) return;
      const [first] = forwardedElements(`${client}, ${text(last)}`);
      assert.deepEqual(first, { for: last.for, proto: last.proto });
    },
  );
  fc.assert(property, fuzzRuns(1000));
});

test('forwardedElements never throws for arbitrary text', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (any) => {
      for (const one of forwardedElements(any)) assert(one === undefined || typeof one === 'object');
    }),
    fuzzRuns(1000),
  );
});
