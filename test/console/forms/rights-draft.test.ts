/** The rights of an administrator, from the form to the request: only what the chosen role can have is sent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  blankRights,
  profilesIn,
  type RightsDraft,
  rightsBody,
  rightsDraft,
} from '../../../assets/console/forms/rights-draft.ts';

const typed = { reach: 'team=web, team=db', profiles: ' local-ca/web,staging-ca/db ' };
const reach = ['team=web', 'team=db'];
const profiles = ['local-ca/web', 'staging-ca/db'];

const bodies: readonly (readonly [draft: RightsDraft, sent: object])[] = [
  [blankRights, { role: 'admin', reach: [], profiles: [] }],
  [
    { role: 'admin', ...typed },
    { role: 'admin', reach: [], profiles: [] },
  ],
  [
    { role: 'operator', ...typed },
    { role: 'operator', reach, profiles },
  ],
  [
    { role: 'viewer', ...typed },
    { role: 'viewer', reach, profiles: [] },
  ],
];

test('the rights that the form sends are those that the role can have', () => {
  for (const [draft, sent] of bodies) assert.deepEqual(rightsBody(draft), sent, JSON.stringify(draft));
});

test('the rights of an administrator pass through the form unchanged', () => {
  const rights = { role: 'operator', reach, profiles } as const;
  assert.deepEqual(rightsBody(rightsDraft(rights)), rights);
});

test('profiles are separated by commas, spaces and lines', () => {
  assert.deepEqual(profilesIn('a/b, c/d\n e/f,,'), ['a/b', 'c/d', 'e/f']);
  assert.deepEqual(profilesIn(' , '), []);
});
