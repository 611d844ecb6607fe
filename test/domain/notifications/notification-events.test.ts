/** Which notices fit the filter of a channel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { matchesFilter, subscribedEvent } from '../../../src/domain/notifications/notification-events.ts';

test('a pattern matches a whole name, with * for any characters, including a literal *', () => {
  const cases: [pattern: string, name: string, fits: boolean][] = [
    ['web', 'web', true],
    ['web', 'web1', false],
    ['web', 'aweb', false],
    ['web*', 'web', true],
    ['web*', 'web.example.com', true],
    ['*.example.com', 'www.example.com', true],
    ['*.example.com', '*.example.com', true],
    ['*.example.com', 'example.com', false],
    ['*.example.com', 'wwwXexampleXcom', false],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'a-c-b-c', true],
    ['a*b*c', 'acb', false],
    ['ab*ba', 'aba', false],
    ['ab*ba', 'abba', true],
    ['**', 'anything', true],
    ['WEB', 'web', false],
  ];
  for (const [pattern, name, fits] of cases) {
    assert.equal(matchesFilter([pattern], [name]), fits, `${pattern} ${name}`);
  }
});

test('patterns with 63 stars match against a name of 127 characters', () => {
  const name = 'a'.repeat(127);
  assert.equal(matchesFilter([`${'a*'.repeat(63)}b`], [name]), false);
  assert.equal(matchesFilter([`${'*a'.repeat(63)}*`], [name]), true);
});

test('an empty filter matches everything, and every filter matches events without a certificate', () => {
  assert.equal(matchesFilter([], ['web']), true);
  assert.equal(matchesFilter(['mail*'], null), true);
  assert.equal(matchesFilter(['mail*'], ['*']), true);
  assert.equal(matchesFilter(['mail*'], ['web', 'mail1']), true);
  assert.equal(matchesFilter(['mail*'], []), false);
  assert.equal(matchesFilter(['mail*', 'web'], ['web']), true);
});

test('subscribedEvent maps each recovery to its alarm event', () => {
  assert.equal(subscribedEvent('renewal.recovered'), 'renewal.failed');
  assert.equal(subscribedEvent('certificate.recovered'), 'certificate.expiring');
  assert.equal(subscribedEvent('backup.recovered'), 'backup.overdue');
  assert.equal(subscribedEvent('private_ca.recovered'), 'private_ca.expiring');
  assert.equal(subscribedEvent('deployment.recovered'), 'deployment.unhealthy');
  assert.equal(subscribedEvent('endpoint.recovered'), 'endpoint.unhealthy');
  assert.equal(subscribedEvent('certificate.issued'), 'certificate.issued');
});
