/** Tables: columns line up whatever is in them, and a table that must fit is shortened where it costs least. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Cell, type Column, table } from '../../../src/cli/terminal/table.ts';
import { cut, widthOf } from '../../../src/cli/terminal/text-width.ts';

const lines = (...args: Parameters<typeof table>) => table(...args).split('\n');

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
  const all = lines(['ROW'], rows);
  assert.deepEqual([all.length, all[200_000]], [200_002, '199999']);
});

test('control characters, line separators and marks that reorder text are shown as question marks', () => {
  assert.equal(table(['A'], [['\u001b[31mred\r\n\u009b2J\u2028\u202e']]), 'A\n?[31mred???2J??\n');
  assert.equal(table([{ title: 'A', holds: 'list' }], [[['\u001b[2J', 'b\n']]], 80), 'A\n?[2J, b?\n');
});

test('widthOf returns the columns that a text takes on a terminal', () => {
  const cases: readonly (readonly [text: string, width: number])[] = [
    ['', 0],
    ['plain', 5],
    ['Zürich', 6],
    ['Zu\u0308rich', 6],
    ['東京', 4],
    ['ｶﾀｶﾅ', 4],
    ['서울', 4],
    ['ＡＢ', 4],
    ['🔒', 2],
    ['👩‍💻', 2],
    ['🇨🇭', 2],
    ['⚠️', 2],
    ['a\u200bb', 2],
    ['…', 1],
  ];
  for (const [text, width] of cases) assert.equal(widthOf(text), width, JSON.stringify(text));
});

test('a text is cut between characters, never within one', () => {
  const cases: readonly (readonly [text: string, width: number, kept: string])[] = [
    ['abc', 3, 'abc'],
    ['abcd', 3, 'ab…'],
    ['東京都', 6, '東京都'],
    ['東京都', 5, '東京…'],
    ['東京都', 4, '東…'],
    ['👩‍💻👩‍💻', 3, '👩‍💻…'],
    ['Zu\u0308rich', 3, 'Zu\u0308…'],
    ['abc', 1, '…'],
  ];
  for (const [text, width, kept] of cases) assert.equal(cut(text, width), kept, `${text} ${width}`);
});

test('cells after wide characters line up', () => {
  assert.deepEqual(
    lines(
      ['NAME', 'STATE'],
      [
        ['東京', 'ok'],
        ['web', 'ok'],
      ],
    ),
    ['NAME  STATE', '東京  ok', 'web   ok', ''],
  );
});

const columns: readonly Column[] = [
  { title: 'NAME', holds: 'name' },
  'STATUS',
  { title: 'AT', holds: 'time' },
  { title: 'DOMAINS', holds: 'list' },
];
const domains = Array.from({ length: 40 }, (_, index) => `host-${index}.example.com`);
const row: readonly Cell[] = ['web', 'valid', '2026-11-23T01:49:08.123Z', domains];

test('a list is shortened to its first entries and how many more there are', () => {
  assert.equal(
    lines(columns, [row], 80)[1],
    'web   valid   2026-11-23T01:49:08.123Z  host-0.example.com, +39',
  );
  assert.equal(
    lines(columns, [row], 100)[1],
    'web   valid   2026-11-23T01:49:08.123Z  host-0.example.com, host-1.example.com, +38',
  );
});

test('a narrow table drops the seconds of times first, then cuts lists and names', () => {
  assert.equal(lines(columns, [row], 60)[1], 'web   valid   2026-11-23 01:49Z  host-0.example.com, +39');
  assert.equal(lines(columns, [row], 50)[1], 'web   valid   2026-11-23 01:49Z  host-0.exam…, +39');
  const long: readonly Cell[] = ['a-name-that-does-not-end', ...row.slice(1)];
  assert.match(lines(columns, [long], 70)[1] ?? '', /^a-name-that-does-not-end {2}valid/);
  assert.match(lines(columns, [long], 60)[1] ?? '', /^a-name-that-d.*… {2}valid/);
});

test('a time such as never stays, and a list of one entry is cut like a text', () => {
  const narrow = lines(columns, [['web', 'valid', 'never', ['x'.repeat(60)]], row], 60);
  assert.equal(narrow[1], `web   valid   never              ${'x'.repeat(26)}…`);
});

test('no line is wider than the terminal, for any width', () => {
  const wild: readonly Cell[] = ['東京'.repeat(40), '👩‍💻'.repeat(30), 'never', ['x'.repeat(300), '東京']];
  for (let width = 1; width <= 200; width++) {
    for (const line of lines(columns, [row, wild, ['', '', '', []]], width)) {
      assert.ok(widthOf(line) <= width, `${width}: ${line}`);
    }
  }
});

test('without a width, nothing is shortened, and list entries are separated by spaces', () => {
  assert.ok(table(columns, [row]).endsWith(`08.123Z  ${domains.join(' ')}\n`));
});
