/** What people read when a CA refuses. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcmeError } from '../../src/acme/acme-error.ts';
import { problemOf } from '../../src/acme/problem-document.ts';

test('AcmeError.type is the last part of an ACME error URN, and empty otherwise', () => {
  const typeOf = (type: string) => new AcmeError('problem', '', { problem: { ...problemOf(''), type } }).type;
  assert.equal(typeOf('urn:ietf:params:acme:error:rateLimited'), 'rateLimited');
  assert.equal(typeOf('urn:acme:error:malformed'), 'malformed');
  assert.equal(typeOf('about:blank'), '');
  assert.equal(typeOf('https://ca.test/errors/odd'), '');
  assert.equal(new AcmeError('network', 'no').type, '');
});

test('AcmeError.message is truncated and contains no control characters', () => {
  const { message } = new AcmeError('protocol', `a\u001b[2J\r\nb\u202e${'x'.repeat(9000)}`);
  assert.match(message, /^a \[2J b x+…$/);
  assert(message.length <= 2001);
});
