/** Labels as people type them: separated by commas, with spaces only inside. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelsIn } from '../../../assets/console/text/label-list.ts';

const lists: readonly (readonly [typed: string, labels: readonly string[]])[] = [
  ['', []],
  [' , ,', []],
  ['team=web', ['team=web']],
  ['team=web,env=prod', ['team=web', 'env=prod']],
  [' team=web ,\tenv=prod, ', ['team=web', 'env=prod']],
  ['owner=Web and Mail, env=prod', ['owner=Web and Mail', 'env=prod']],
  ['team=web team=db', ['team=web team=db']],
  ['team=web, team=web', ['team=web', 'team=web']],
];

test('typed labels are split at commas, and only there', () => {
  for (const [typed, labels] of lists) assert.deepEqual(labelsIn(typed), labels, typed);
});
