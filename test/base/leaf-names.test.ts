/** URIs, email addresses and fields of subjects: what certificates take, and what they refuse. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseEmail, parseSubjectField, parseUri } from '../../src/base/leaf-names.ts';

test('parseUri accepts only absolute ASCII URIs, with a host if they have an authority', () => {
  for (const uri of [
    'spiffe://example.org',
    'spiffe://example.org/ns/prod/sa/web_1',
    'https://example.com/a?b=c#d',
    'urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
  ]) {
    assert.equal(parseUri(uri), uri);
  }
  for (const text of [
    ...['', 'example.com', '//example.com/', 'https://', 'https:///path', 'https://bücher.example/', 'a b:c'],
    ...['spiffe:/web', 'spiffe://', 'spiffe://Example.org/web', 'SPIFFE://example.org/web', 'spiffe://a/b/'],
    ...['spiffe://a//b', 'spiffe://a/../b', 'spiffe://a/b?c', 'spiffe://a:1/b', 'spiffe://u@a/b'],
    `https://example.com/${'a'.repeat(2048)}`,
  ]) {
    assert.equal(parseUri(text), undefined, text);
  }
});

test('parseEmail accepts only ASCII mailboxes and normalizes the domain', () => {
  assert.equal(parseEmail("o'neil+vpn@Example.COM"), "o'neil+vpn@example.com");
  assert.equal(parseEmail('a@bücher.example'), 'a@xn--bcher-kva.example');
  for (const text of [
    ...['', 'a', '@example.com', 'a@', 'a b@example.com', 'ä@example.com', 'a@192.0.2.1', 'a@*.example.com'],
    ...['a@b@example.com', `${'a'.repeat(65)}@example.com`, 'a@example.com\n'],
  ]) {
    assert.equal(parseEmail(text), undefined, text);
  }
});

test('parseSubjectField accepts only a known field with a printable value', () => {
  assert.deepEqual(parseSubjectField('cn=Ålice = x'), { field: 'CN', value: 'Ålice = x' });
  assert.deepEqual(parseSubjectField('C=de'), { field: 'C', value: 'DE' });
  assert.notEqual(parseSubjectField(`O=${'ä'.repeat(64)}`), undefined);
  for (const text of [
    ...['', 'CN', 'CN=', 'CN= ', 'X=y', 'C=DEU', 'C=1x', '=x', 'CN=a\nb', 'CN=a\u202eb'],
    `O=${'a'.repeat(65)}`,
  ]) {
    assert.equal(parseSubjectField(text), undefined, text);
  }
});
