/** The order, filter and counts of deploy targets and their certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  filteredTargets,
  type TargetState,
  targetCounts,
  worstOf,
} from '../../../assets/console/fleet/targets.ts';

type Row = { readonly name: string; readonly state: TargetState | undefined };

const rows: readonly Row[] = [
  { name: 'api', state: 'current' },
  { name: 'empty', state: undefined },
  { name: 'shop', state: 'failing' },
  { name: 'web 1', state: 'waiting' },
  { name: 'web 2', state: 'failing' },
];

const filters: readonly (readonly [search: string, state: string, names: string])[] = [
  ['', '', 'shop, web 2, web 1, api, empty'],
  ['', 'failing', 'shop, web 2'],
  ['', 'current', 'api'],
  ['WEB', '', 'web 2, web 1'],
  ['web 1', 'failing', ''],
];

test('targets are in the order of their states, and in the state and with the words of the filter', () => {
  for (const [search, state, names] of filters) {
    const found = filteredTargets(
      rows,
      { search, state },
      (row) => row.state,
      ({ name }) => [name],
    );
    assert.equal(found.map(({ name }) => name).join(', '), names, `${search}, ${state}`);
  }
});

test('the state of a target is the one of its certificates that needs attention first', () => {
  assert.equal(worstOf({ current: 3, waiting: 1, failing: 1 }), 'failing');
  assert.equal(worstOf({ current: 3, waiting: 1, failing: 0 }), 'waiting');
  assert.equal(worstOf({ current: 3, waiting: 0, failing: 0 }), 'current');
  assert.equal(worstOf({ current: 0, waiting: 0, failing: 0 }), undefined);
});

test('the certificates of a target are counted by state', () => {
  assert.equal(targetCounts({ current: 1200, waiting: 0, failing: 2 }), '2 failing, 1,200 current');
  assert.equal(targetCounts({ current: 0, waiting: 0, failing: 0 }), 'none');
});
