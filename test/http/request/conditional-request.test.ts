/** `If-None-Match` against a reference model: RFC 9110 §13.1.2 with lists, weak tags, commas in tags, and junk. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { noneMatch } from '../../../src/http/request/conditional-request.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';

const etag = '"aB3-_x"';

suite('If-None-Match', () => {
  test('matches the tag itself, weak or strong, alone or anywhere in a list', () => {
    const headers = [
      etag,
      `W/${etag}`,
      `"other", ${etag}`,
      `${etag},"other"`,
      `"with,comma",${etag}`,
      `"a,b" , W/"c,d" ,\t${etag} , "e"`,
      `,, ,${etag},`,
      ` ${etag} `,
      '*',
      ' * ',
    ];
    for (const header of headers) assert.equal(noneMatch(header, etag), true, header);
  });

  test('does not match another tag, a part of the tag, or the tag inside another', () => {
    const headers = [
      '"other"',
      '""',
      '"aB3-_"',
      '"AB3-_X"',
      'aB3-_x',
      `"x,${etag.slice(1)}`,
      `"has ${etag}`,
      '"a", "b"',
      '',
      ',',
      '"*"',
    ];
    for (const header of headers) assert.equal(noneMatch(header, etag), false, header);
    assert.equal(noneMatch(undefined, etag), false);
  });

  test('matches nothing when it is malformed, even if it contains the tag', () => {
    const headers = [
      `${etag} ${etag}`,
      `w/${etag}`,
      `W/ ${etag}`,
      `${etag}; "x"`,
      `*, ${etag}`,
      `${etag}, *`,
      `${etag}, "open`,
      `${etag}, bare`,
      `W/`,
    ];
    for (const header of headers) assert.equal(noneMatch(header, etag), false, header);
  });

  test('compares weakly where the current tag is weak', () => {
    assert.equal(noneMatch('"v"', 'W/"v"'), true);
    assert.equal(noneMatch('W/"v"', 'W/"v"'), true);
  });

  test('agrees with a model for every list of tags', () => {
    // Etag characters of §8.8.3: no quote, no space; commas and Latin-1 are allowed.
    const opaque = fc.string({
      unit: fc.oneof(
        fc.constantFrom(',', 'W', '/', '*', 'a', 'b'),
        fc.integer({ min: 0x23, max: 0xff }).map((code) => String.fromCharCode(code === 0x7f ? 0x21 : code)),
      ),
      maxLength: 4,
    });
    const printable = opaque.map((text) => text.replaceAll(/[\x7f-\x9f]/g, '!'));
    const tag = fc.record({ weak: fc.boolean(), text: printable });
    const gap = fc.constantFrom('', ' ', '\t', '  ', ', ,');
    const list = fc.array(fc.tuple(tag, gap, gap), { minLength: 1, maxLength: 6 });
    const property = fc.property(list, printable, (items, current) => {
      const header = items
        .map(([{ weak, text }, before, after]) => `${before}${weak ? 'W/' : ''}"${text}"${after}`)
        .join(',');
      const named = items.some(([{ text }]) => text === current);
      assert.equal(noneMatch(header, `"${current}"`), named, header);
      const [[first] = [{ text: '' }]] = items;
      assert.equal(noneMatch(header, `"${first.text}"`), true, header);
    });
    fc.assert(property, fuzzRuns(1000));
  });

  test('never throws for arbitrary text, and matches none without the tag or *', () => {
    const unit = fc.oneof(fc.constantFrom('"', ',', ' ', '\t', '*', 'W/', '\\'), fc.string({ maxLength: 2 }));
    const property = fc.property(fc.string({ unit, maxLength: 40 }), (header) => {
      const matched = noneMatch(header, etag);
      assert(!matched || header.includes(etag) || header.trim() === '*', header);
    });
    fc.assert(property, fuzzRuns(1000));
  });
});
