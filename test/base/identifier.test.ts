/** Identifiers: the same name is always written the same way, and what a certificate cannot hold is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isAddress, parseIdentifier } from '../../src/base/identifier.ts';

const label63 = 'a'.repeat(63);
const longest = [label63, label63, label63, 'b'.repeat(61)].join('.');

const normalForms: readonly (readonly [what: string, text: string, normal: string])[] = [
  ['a lower-case name', 'www.example.com', 'www.example.com'],
  ['a single label', 'localhost', 'localhost'],
  ['upper case', 'WWW.Example.COM', 'www.example.com'],
  ['one trailing dot', 'example.com.', 'example.com'],
  ['digits and hyphens', '1-2.3com.example', '1-2.3com.example'],
  ['a top-level domain with a digit', 'example.c0m', 'example.c0m'],
  ['an international name', 'münchen.example', 'xn--mnchen-3ya.example'],
  ['an international name in upper case', 'MÜNCHEN.example', 'xn--mnchen-3ya.example'],
  ['a letter that older rules mapped away', 'faß.example', 'xn--fa-hia.example'],
  ['an A-label', 'xn--mnchen-3ya.example', 'xn--mnchen-3ya.example'],
  ['an ideographic full stop', 'example。com', 'example.com'],
  ['a wildcard', '*.example.com', '*.example.com'],
  ['a wildcard in upper case with a dot', '*.EXAMPLE.com.', '*.example.com'],
  ['an international wildcard', '*.münchen.example', '*.xn--mnchen-3ya.example'],
  ['a label of 63 characters', `${label63}.example`, `${label63}.example`],
  ['a name of 253 characters', longest, longest],
  ['a name of 253 characters with a dot', `${longest}.`, longest],
  ['an IPv4 address', '192.0.2.1', '192.0.2.1'],
  ['an IPv6 address', '2001:db8::1', '2001:db8::1'],
  ['an IPv6 address in full and upper case', '2001:0DB8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
  ['an IPv6 address with two runs of zeros', '2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
  ['the IPv6 loopback address', '0:0:0:0:0:0:0:1', '::1'],
  ['an IPv4-mapped IPv6 address', '::ffff:192.0.2.1', '::ffff:c000:201'],
];

for (const [what, text, normal] of normalForms) {
  test(`${what} is written as ${normal.slice(0, 40)}`, () => {
    assert.equal(parseIdentifier(text), normal);
  });
}

const refused: readonly (readonly [what: string, text: string])[] = [
  ['an empty string', ''],
  ['a dot', '.'],
  ['an empty label', 'a..b'],
  ['an empty first label', '.example.com'],
  ['two trailing dots', 'example.com..'],
  ['a space before', ' example.com'],
  ['a space inside', 'exam ple.com'],
  ['a tab inside', 'exam\tple.com'],
  ['a line break inside', 'exam\nple.com'],
  ['a NUL inside', 'exam\0ple.com'],
  ['a path', 'example.com/path'],
  ['a path with a backslash', 'example.com\\path'],
  ['a query', 'example.com?x'],
  ['a fragment', 'example.com#x'],
  ['a port', 'example.com:443'],
  ['a user', 'me@example.com'],
  ['a URL', 'https://example.com'],
  ['percent encoding', 'ex%61mple.com'],
  ['quotes', '"example.com"'],
  ['a comma', 'a.example,b.example'],
  ['an underscore', 'a_b.example'],
  ['a leading underscore', '_acme-challenge.example.com'],
  ['a label that begins with a hyphen', '-a.example'],
  ['a label that ends with a hyphen', 'a-.example'],
  ['a label of 64 characters', `${'a'.repeat(64)}.example`],
  ['a name of 254 characters', `${longest}b`],
  ['a wildcard of 254 characters', `*.${longest.slice(1)}`],
  ['a star alone', '*'],
  ['a star and a dot', '*.'],
  ['a wildcard of a top-level domain', '*.com'],
  ['a wildcard that is not first', 'www.*.example.com'],
  ['two wildcards', '*.*.example.com'],
  ['a star in a label', 'w*.example.com'],
  ['a wildcard of an IPv4 address', '*.192.0.2.1'],
  ['a wildcard of an IPv6 address', '*.::1'],
  ['a top-level domain of digits only', 'example.123'],
  ['digits that would be an address in a URL', '3221225985'],
  ['an address in hexadecimal', '0xc0.0.2.1'],
  ['an IPv4 address with leading zeros', '192.000.002.001'],
  ['an IPv4 address with a dot', '192.0.2.1.'],
  ['an IPv4 address of three parts', '192.0.1'],
  ['an IPv4 address that is too large', '192.0.2.256'],
  ['an IPv6 address in brackets', '[::1]'],
  ['an IPv6 address with a zone', 'fe80::1%eth0'],
  ['an address with a prefix length', '192.0.2.0/24'],
];

for (const [what, text] of refused) {
  test(`${what} is not a valid identifier`, () => {
    assert.equal(parseIdentifier(text), undefined);
  });
}

test('an address is distinguished from a name', () => {
  const kinds = ['192.0.2.1', '::1', 'example.com', '*.example.com'].map((text) => {
    const identifier = parseIdentifier(text);
    assert(identifier);
    return isAddress(identifier);
  });
  assert.deepEqual(kinds, [true, true, false, false]);
});

test('parseIdentifier leaves a normalized identifier unchanged, for any text', () => {
  const text = fc.oneof(fc.string({ unit: 'binary' }), fc.domain(), fc.ipV4(), fc.ipV6());
  fc.assert(
    fc.property(text, (any) => {
      const once = parseIdentifier(any);
      if (once === undefined) return;
      assert.equal(parseIdentifier(once), once);
      assert.match(once, /^(\*\.)?[a-z0-9.:-]{1,253}$/);
    }),
  );
});
