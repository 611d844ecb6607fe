/** Which keystore passwords are accepted, and what the refusals say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { keystorePassword } from '../../../src/crypto/secrets/keystore-password.ts';

test('any printable password of 1 to 128 characters is accepted as it is', () => {
  for (const text of ['x', ' ', 'changeit', 'é', 'e\u0301', '\u{1F511}'.repeat(128)]) {
    assert.equal(keystorePassword(text).expose(), text);
  }
});

test('empty and long passwords, control characters and lone surrogates are rejected without being shown', () => {
  const refused = { '': /empty/, 'a\u0000': /control/, 'b\n': /control/, '\ud800': /control/ } as Record<
    string,
    RegExp
  >;
  for (const [text, detail] of [...Object.entries(refused), ['é'.repeat(129), /long/] as const]) {
    assert.throws(
      () => keystorePassword(text),
      (error: unknown) => {
        assert(error instanceof Problem);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, detail);
        return text.length < 2 || !error.message.includes(text);
      },
    );
  }
});
