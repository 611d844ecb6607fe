/** Names in text and on the wire; input may be arbitrary. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { encodeName, isWithin, plainName, readName, upwards } from '../../../src/dns/resolver/dns-name.ts';

test('plainName converts a name to lower case and removes the trailing dot', () => {
  assert.equal(plainName('Www.Example.COM.'), 'www.example.com');
  assert.equal(plainName('.'), '');
});

test('upwards lists a name and its parents, without the root', () => {
  assert.deepEqual(upwards('A.b.c.'), ['a.b.c', 'b.c', 'c']);
});

test('isWithin accepts the zone itself and names with whole labels before it', () => {
  assert.equal(isWithin('Example.com.', 'example.COM'), true);
  assert.equal(isWithin('a.b.example.com', 'example.com'), true);
  assert.equal(isWithin('badexample.com', 'example.com'), false);
  assert.equal(isWithin('com', 'example.com'), false);
  assert.equal(isWithin('example.com', ''), true);
});

test('readName reads the output of encodeName back', () => {
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

test('encodeName rejects an invalid name', () => {
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

test('readName follows a compression pointer and returns the offset after it', () => {
  const bytes = Buffer.from('\x04Test\x00\x03www\xc0\x00\xff', 'latin1');
  assert.deepEqual(readName(bytes, 6), { name: 'www.test', next: 12 });
});

test('readName escapes a dot inside a label', () => {
  assert.equal(readName(Buffer.from('\x03a.b\x01c\x00', 'latin1'), 0).name, 'a\\.b.c');
});

test('readName rejects pointer loops, forward pointers, and truncated and overlong names', () => {
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

test('readName returns a name or throws RangeError for any bytes', () => {
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
