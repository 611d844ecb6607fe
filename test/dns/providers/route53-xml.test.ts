/** The little XML of Route 53, including hostile input. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertXml, elementsOf, escapeXml, textOf } from '../../../src/dns/providers/route53-xml.ts';

test('elementsOf finds elements with attributes and empty elements, and ignores longer element names', () => {
  const xml = '<As x="1"><A y="2">one</A><AB>no</AB><A/><A\n>two</A></As>';
  assert.deepEqual(elementsOf(xml, 'A'), ['one', '', 'two']);
  assert.deepEqual(elementsOf(xml, 'C'), []);
});

test('textOf resolves entities once and reads the output of escapeXml back', () => {
  assert.equal(textOf('<V>&quot;a&amp;lt;b&#34;&#x22;&unknown;</V>', 'V'), '"a&lt;b""&unknown;');
  const text = `"a<b>&'c"`;
  assert.equal(textOf(`<V>${escapeXml(text)}</V>`, 'V'), text);
  assert.equal(textOf('<V>&#x110000;</V>', 'V'), '&#x110000;');
});

test('elementsOf stops at an element without an end tag', () => {
  assert.deepEqual(elementsOf('<A>one</A><A>two', 'A'), ['one']);
  assert.deepEqual(elementsOf('<A', 'A'), []);
});

test('elementsOf finds nothing in a megabyte of unclosed tags', () => {
  assert.deepEqual(elementsOf('<A>'.repeat(350_000), 'A'), []);
  assert.deepEqual(elementsOf('<AA>'.repeat(250_000), 'A'), []);
  assert.deepEqual(elementsOf('<A '.repeat(350_000), 'A'), []);
});

test('assertXml throws for text that is not XML', () => {
  for (const text of ['', 'hello', '{"a":1}', '<!DOCTYPE html><html></html>', '<html></html>']) {
    assert.throws(() => assertXml(text));
  }
  assert.equal(assertXml('<?xml version="1.0"?><A/>\n'), '<?xml version="1.0"?><A/>\n');
});
