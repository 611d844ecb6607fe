/** What commands print: facts that line up, JSON that ends with a newline, and nothing that moves a terminal. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { daysUntil, facts, jsonPieces, jsonText } from '../../../src/cli/terminal/output.ts';

const day = 86_400_000;

test('control characters and marks that reorder text are shown as question marks in facts', () => {
  assert.equal(facts([['A', 'x\u0007\u007fy\u202e']]), 'A  x??y?\n');
});

test('the values of facts line up', () => {
  assert.equal(
    facts([
      ['Name', 'a'],
      ['Key type', 'ec256'],
    ]),
    'Name      a\nKey type  ec256\n',
  );
});

test('JSON is indented and ends with a newline', () => {
  assert.equal(jsonText([{ a: 1 }]), '[\n  {\n    "a": 1\n  }\n]\n');
  assert.equal(jsonText([]), '[]\n');
});

test('daysUntil returns the whole days that are left, or expired', () => {
  assert.equal(daysUntil(10 * day, day / 2), '9 days');
  assert.equal(daysUntil(2 * day, day), '1 day');
  assert.equal(daysUntil(day, 1), 'under 1 day');
  assert.equal(daysUntil(1, 0), 'under 1 day');
  assert.equal(daysUntil(0, 0), 'expired');
  assert.equal(daysUntil(0, day), 'expired');
});

test('JSON in pieces is the JSON of all pages put together', async () => {
  const things = [{ id: 1, in: [] }, { id: 2, in: ['a', '\n]'] }, [], null, 'x'];
  for (const pages of [
    [things],
    [things.slice(0, 2), things.slice(2)],
    [[], things, []],
    things.map((one) => [one]),
    [[]],
    [],
  ]) {
    let text = '';
    for await (const piece of jsonPieces(Readable.from(pages))) text += piece;
    assert.equal(text, jsonText(pages.flat()));
  }
});
