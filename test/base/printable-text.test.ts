/** Text from outside: nothing that a terminal would act on remains, and JSON stays the same value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  escapedCell,
  escapedJson,
  printable,
  printableLines,
  shortened,
} from '../../src/base/printable-text.ts';

/** Every character that a terminal would act on, and the neighbors of these ranges, which stay. */
const acting = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, index) => 0x7f + index),
  ...[0x61c, 0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e],
  ...[0x2066, 0x2067, 0x2068, 0x2069],
];
const harmless = [0x20, 0x7e, 0xa0, 0x61b, 0x61d, 0x200d, 0x2010, 0x2027, 0x202f, 0x2065, 0x206a, 0xe9];

const cases: readonly (readonly [text: string, printable: string, cell: string])[] = [
  ['plain – “é” 漢字 😀', 'plain – “é” 漢字 😀', 'plain – “é” 漢字 😀'],
  ['\u001b[31mred\u001b[0m', '?[31mred?[0m', '\\u001b[31mred\\u001b[0m'],
  ['\u001b]52;c;ZXZpbA==\u0007', '?]52;c;ZXZpbA==?', '\\u001b]52;c;ZXZpbA==\\u0007'],
  ['\u009b2J\u009d0;x\u009c', '?2J?0;x?', '\\u009b2J\\u009d0;x\\u009c'],
  ['a\u202egpj.exe', 'a?gpj.exe', 'a\\u202egpj.exe'],
  ['a\r\nb\tc\u0000\u2028', 'a??b?c??', 'a\\u000d\nb\tc\\u0000\\u2028'],
];

for (const [text, shown, written] of cases) {
  test(`${JSON.stringify(text)} is shown as ${JSON.stringify(shown)} and written as ${JSON.stringify(written)}`, () => {
    assert.equal(printable(text), shown);
    assert.equal(escapedCell(text), written);
    const json = escapedJson(JSON.stringify({ text }, null, 2));
    assert.equal(JSON.parse(json).text, text);
    assert.equal(printableLines(json), json);
  });
}

test('control and bidirectional characters are replaced, and neighboring characters stay', () => {
  for (const code of acting) {
    const character = String.fromCharCode(code);
    assert.equal(printable(character), '?', code.toString(16));
    const isKept = character === '\t' || character === '\n';
    const written = `\\u${code.toString(16).padStart(4, '0')}`;
    assert.equal(escapedCell(character), isKept ? character : written);
    assert.equal(escapedJson(JSON.stringify(character)).match(/^"[\u0020-\u007e]+"$/)?.length, 1);
    assert.equal(shortened(`a${character}b`, 9), 'a b');
  }
  for (const code of harmless) {
    const character = String.fromCharCode(code);
    assert.deepEqual([printable(character), escapedCell(character)], [character, character]);
  }
});

test('printableLines keeps line breaks', () => {
  assert.equal(printableLines('a\u001b\n\tb\n'), 'a?\n?b\n');
});
