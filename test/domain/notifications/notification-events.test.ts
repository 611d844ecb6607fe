/** Which notices fit the filter of a channel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chosenFor, fitsFilter } from '../../../src/domain/notifications/notification-events.ts';

test('a pattern fits a whole name, with * for any characters, also where names have a *', () => {
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
    assert.equal(fitsFilter([pattern], [name]), fits, `${pattern} ${name}`);
  }
});

test('no pattern takes long, whatever its stars', () => {
  const name = 'a'.repeat(127);
  assert.equal(fitsFilter([`${'a*'.repeat(63)}b`], [name]), false);
  assert.equal(fitsFilter([`${'*a'.repeat(63)}*`], [name]), true);
});

test('without patterns everything fits, and what is about no certificate always does', () => {
  assert.equal(fitsFilter([], ['web']), true);
  assert.equal(fitsFilter(['mail*'], null), true);
  assert.equal(fitsFilter(['mail*'], ['*']), true);
  assert.equal(fitsFilter(['mail*'], ['web', 'mail1']), true);
  assert.equal(fitsFilter(['mail*'], []), false);
  assert.equal(fitsFilter(['mail*', 'web'], ['web']), true);
});

test('who chose an alarm is told of its end', () => {
  assert.equal(chosenFor('renewal.recovered'), 'renewal.failed');
  assert.equal(chosenFor('certificate.recovered'), 'certificate.expiring');
  assert.equal(chosenFor('backup.recovered'), 'backup.overdue');
  assert.equal(chosenFor('certificate.issued'), 'certificate.issued');
});
