/** The query for one name finds that name and no other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { pathToName } from '../../../assets/console/data/name-taken.ts';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { certificatesQuery } from '../../../src/http/openapi/certificate-admin-schemas.ts';

/** The API's response for these names, in its order. */
function answer(path: string, names: readonly string[]): readonly string[] {
  const query = Object.fromEntries(new URLSearchParams(path.replace(/^.*\?/, '')));
  const { search = '', after = '', limit } = certificatesQuery.parse(query);
  const fits = (name: string) => name > after && name.toLowerCase().includes(search.toLowerCase());
  return names
    .filter(fits)
    .toSorted((one, other) => (one < other ? -1 : 1))
    .slice(0, limit);
}

const name = fc
  .string({ unit: fc.constantFrom(...'aAbz09*._-'), minLength: 1, maxLength: 6 })
  .filter((text) => parseCertName(text) !== undefined);

test('the query for a name returns an existing name first and no exact match for a missing one', () => {
  fc.assert(
    fc.property(name, fc.uniqueArray(name, { maxLength: 30 }), (wanted, others) => {
      const without = others.filter((other) => other !== wanted);
      assert.equal(answer(pathToName(wanted), [...without, wanted])[0], wanted);
      assert.notEqual(answer(pathToName(wanted), without)[0], wanted);
    }),
  );
});

test('the longest name can be checked', () => {
  const longest = 'x'.repeat(128);
  assert.deepEqual(answer(pathToName(longest), [`${longest.slice(1)}y`, longest]), [longest]);
});
