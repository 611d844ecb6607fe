/** Names in text and on the wire; input may be arbitrary. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { encodeName, isWithin, plainName, readName, upwards } from '../../../src/dns/resolver/dns-name.ts';

test('names lose their capitals and the dot at the end', () => {
  assert.equal(plainName('Www.Example.COM.'), 'www.example.com');
  assert.equal(plainName('.'), '');
});

test('upwards from a name lead all names above it, without the root', () => {
  assert.deepEqual(upwards('A.b.c.'), ['a.b.c', 'b.c', 'c']);
});

test('within a zone are its own name and whole labels before it', () => {
  assert.equal(isWithin('Example.com.', 'example.COM'), true);
  assert.equal(isWithin('a.b.example.com', 'example.com'), true);
  assert.equal(isWithin('badexample.com', 'example.com'), false);
  assert.equal(isWithin('com', 'example.com'), false);
  assert.equal(isWithin('example.com', ''), true);
});

test('what was encoded reads the same', () => {
  const label = fc.stringMatching(/^[a-z0-9_-]{1,63}$/);
  fc.assert(
    fc.property(fc.array(label, { minLength: 1, maxLength: 3 }), (labels) => {
      const bytes = encodeName(labels.join('.'));
      assert.deepEqual(readName(bytes, 0), { name: labels.join('.'), next: bytes.length });
    }),
  );
  assert.deepEqual(encodeName('.'), Buffer.of(0));
  assert.deepEqual(encodeName('EXAMPLE.test.'), Buffer.from('\x07example\x04test\x00', 'latin1'));
});

test('an invalid name is not encoded', () => {
  for (const name of [
    'a..b',
    'a b',
    'bücher.example',
    `${'a'.repeat(64)}.test`,
    `${'a.'.repeat(130)}b`,
    'a\0b',
  ]) {
    assert.throws(() => encodeName(name), DnsProviderError, name);
  }
});

test('pointers are followed backwards, and what comes after them is found', () => {
  const bytes = Buffer.from('\x04Test\x00\x03www\xc0\x00\xff', 'latin1');
  assert.deepEqual(readName(bytes, 6), { name: 'www.test', next: 12 });
});

test('a dot inside of a label does not become a border', () => {
  assert.equal(readName(Buffer.from('\x03a.b\x01c\x00', 'latin1'), 0).name, 'a\\.b.c');
});

test('circles, pointers ahead, cut and overlong names are refused', () => {
  const refused: Record<string, string> = {
    'a pointer to itself': '\xc0\x00',
    'a pointer ahead': '\xc0\x02\x01a\x00',
    'a circle of two': '\x01a\xc0\x00',
    'no end': '\x03www',
    'a cut label': '\x05www\x00',
    'half a pointer': '\xc0',
    'an unknown kind of label': `\x40${'a'.repeat(64)}\x00`,
    'more than 255 bytes': `${`\x3f${'a'.repeat(63)}`.repeat(4)}\x00`,
    nothing: '',
  };
  for (const [what, text] of Object.entries(refused)) {
    assert.throws(() => readName(Buffer.from(text, 'latin1'), 0), RangeError, what);
  }
});

test('any bytes are a name or a RangeError, and never an endless loop', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(300), (bytes, offset) => {
      try {
        const { name, next } = readName(Buffer.from(bytes), offset);
        assert(name.length <= 4 * 255 && next <= bytes.length);
      } catch (error) {
        assert(error instanceof RangeError, String(error));
      }
    }),
  );
});
