/** What commands print: tables that line up, JSON that ends with a newline, and nothing that moves a terminal. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { daysUntil, facts, jsonPieces, jsonText, table } from '../../../src/cli/terminal/output.ts';

const day = 86_400_000;

test('columns of a table stand two spaces apart, as wide as their widest cell, without spaces at the end', () => {
  const rows = [
    ['long name', 'x', 'last'],
    ['b', 'wide cell', ''],
  ];
  assert.equal(
    table(['NAME', 'C', 'END'], rows),
    'NAME       C          END\nlong name  x          last\nb          wide cell\n',
  );
});

test('a table without rows is its header', () => {
  assert.equal(table(['A', 'B'], []), 'A  B\n');
});

test('a table can have more rows than a function can have arguments', () => {
  const rows = Array.from({ length: 200_000 }, (_, row) => [String(row)]);
  const lines = table(['ROW'], rows).split('\n');
  assert.deepEqual([lines.length, lines[200_000]], [200_002, '199999']);
});

test('control characters in cells and facts are shown as question marks', () => {
  assert.equal(table(['A'], [['\u001b[31mred\r\n\u009b2J']]), 'A\n?[31mred???2J\n');
  assert.equal(facts([['A', 'x\u0007\u007fy']]), 'A  x??y\n');
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

test('days until a time are whole days that are left', () => {
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
