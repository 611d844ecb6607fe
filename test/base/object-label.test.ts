/** Which texts are labels, and what the message says about others. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { labelValue, readObjectLabel } from '../../src/base/object-label.ts';

const long = 'x'.repeat(63);

suite('a label', () => {
  const valid: readonly (readonly [text: string, label?: string])[] = [
    ['team=web'],
    ['a=b'],
    ['example.com/team=web'],
    ['cost-center_2=4711'],
    ['team=Vertrieb Süd'],
    ['team=u\u0308ber', 'team=über'],
    [`${long}=${long}`],
    ['team=a/b:c@d+e'],
  ];
  for (const [text, label = text] of valid) {
    test(`is ${JSON.stringify(text)}`, () => assert.deepEqual(readObjectLabel(text), { label }));
  }

  const invalid: readonly (readonly [text: string, fault: RegExp])[] = [
    ['', /write a label as key=value/],
    ['team', /write a label as key=value/],
    ['=web', /the key of a label has/],
    ['Team=web', /lower-case letters/],
    ['-team=web', /starts and ends with a letter or digit/],
    ['team-=web', /starts and ends with a letter or digit/],
    ['te am=web', /the key of a label has/],
    [`${long}x=web`, /up to 63/],
    ['team=', /must not be empty/],
    [`team=${long}x`, /at most 63 characters/],
    ['team=a=b', /must not contain "="; remove it/],
    ['team=a,b', /must not contain ","; remove it/],
    ['team= web', /start or end with a space/],
    ['team=web\n', /start or end with a space/],
    ['team=we\u0007b', /invisible or unassigned character U\+0007/],
    ['team=we\u200bb', /U\+200B/],
    ['team=w\u0435b', /must not mix U\+0435 \(Cyrillic\) with Latin letters/],
  ];
  for (const [text, fault] of invalid) {
    test(`is not ${JSON.stringify(text)}`, () => {
      const read = readObjectLabel(text);
      assert('fault' in read);
      assert.match(read.fault, fault);
    });
  }
});

test('the value of a label is found by its whole key', () => {
  const labels = ['team-x=other', 'team=web'];
  assert.equal(labelValue(labels, 'team'), 'web');
  assert.equal(labelValue(labels, 'tea'), undefined);
});
