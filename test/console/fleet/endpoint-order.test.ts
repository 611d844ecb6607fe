/** Lists of endpoints: their order, search, filter and counts. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  endpointCountsText,
  endpointStates,
  endpointsText,
  filteredEndpoints,
  sortedEndpoints,
} from '../../../assets/console/fleet/endpoint-order.ts';
import { endpointStates as statesOfApi } from '../../../src/domain/endpoints/endpoint-state.ts';
import { endpoint } from './endpoint.ts';

suite('lists of endpoints', () => {
  test('the console has a place in the order for each state of the API', () =>
    assert.deepEqual(endpointStates.toSorted(), statesOfApi.toSorted()));

  test('endpoints that need attention come first, then by address as people count, then by server name', () => {
    const rows = sortedEndpoints([
      endpoint({ id: 1, address: 'web10:443' }),
      endpoint({ id: 2, address: 'web9:443', server_name: 'b' }),
      endpoint({ id: 3, address: 'web9:443', server_name: 'a' }),
      endpoint({ id: 4, address: 'z:443', state: 'outdated' }),
      endpoint({ id: 5, address: 'z:443', state: 'untrusted' }),
      endpoint({ id: 6, address: 'a:443', state: 'unchecked' }),
    ]);
    assert.deepEqual(
      rows.map(({ id }) => id),
      [5, 4, 6, 3, 2, 1],
    );
  });

  const rows = [
    endpoint({ id: 1 }),
    endpoint({ id: 2, address: '192.0.2.7:443', server_name: 'shop.example.com', state: 'outdated' }),
    endpoint({ id: 3, address: 'mx1.example.com:25', starttls: 'smtp', certificate: 'mail' }),
    endpoint({ id: 4, address: 'partner:443', certificate: null, names: ['portal.partner.example'] }),
  ];
  const searches: readonly (readonly [search: string, state: string, found: number[]])[] = [
    ['', '', [1, 2, 3, 4]],
    ['SHOP', '', [2]],
    ['mail smtp', '', [3]],
    ['portal.partner', '', [4]],
    ['', 'outdated', [2]],
    ['example.com', 'outdated', [2]],
    ['nothing', '', []],
  ];
  for (const [search, state, found] of searches)
    test(`the search ${JSON.stringify(search)} in the state ${JSON.stringify(state)} finds ${found.length} of 4`, () =>
      assert.deepEqual(
        filteredEndpoints(rows, { search, state }).map(({ id }) => id),
        found,
      ));

  test('the counts begin with the state that needs attention first, and leave out empty states', () => {
    assert.equal(endpointCountsText(rows), '1 outdated, 3 current');
    assert.deepEqual([endpointsText(1), endpointsText(5000)], ['1 endpoint', '5,000 endpoints']);
  });
});
