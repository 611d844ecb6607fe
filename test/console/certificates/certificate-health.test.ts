/** The group and the health of certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { groupOf, groups, healthOf } from '../../../assets/console/certificates/certificate-health.ts';
import type { Status } from '../../../assets/console/data/shapes.ts';

const cases = [
  // status, last error, group, health
  ['valid', null, 'healthy', 'good'],
  ['valid', 'refused', 'failing', 'warning'],
  ['expiring', null, 'expiring', 'warning'],
  ['expiring', 'refused', 'failing', 'warning'],
  ['expired', null, 'expired', 'bad'],
  ['expired', 'refused', 'expired', 'bad'],
  ['not_yet_valid', null, 'expired', 'bad'],
  ['not_yet_valid', 'refused', 'expired', 'bad'],
  ['pending', null, 'inactive', 'quiet'],
  ['pending', 'refused', 'failing', 'bad'],
  ['disabled', null, 'inactive', 'quiet'],
  ['disabled', 'refused', 'inactive', 'quiet'],
] as const satisfies readonly (readonly [Status, string | null, string, string])[];

for (const [status, last_error, group, health] of cases) {
  test(`a certificate that is ${status}, last error ${last_error}, is in the group ${group}`, () => {
    const facts = { status, renewal: { last_error } };
    assert.equal(groupOf(facts), group);
    assert.equal(healthOf(facts), health);
  });
}

test('every group has a tile with a label and a rule', () => {
  assert.deepEqual(new Set(groups.map(({ id }) => id)), new Set(cases.map(([, , group]) => group)));
});
