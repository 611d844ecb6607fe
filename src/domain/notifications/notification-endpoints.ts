/** Notifies when endpoints become unhealthy, and when they are current again. */
import { formatTimestampOrNull } from '../../base/timestamp.ts';
import type { UnhealthyState } from '../../db/schema/schema-endpoints.ts';
import {
  type EndpointFactsRow,
  type ListedEndpointRow,
  pageEndpointFacts,
  pageEndpoints,
  setNotifiedEndpointState,
} from '../../db/tables/endpoints.ts';
import type { TimedContext } from '../contexts.ts';
import { addressText } from '../endpoints/endpoint-inputs.ts';
import { endpointState } from '../endpoints/endpoint-state.ts';
import { reasonFor, withState } from '../endpoints/endpoints.ts';
import { notifyChanges, type ScanCursor, type Watched } from './notification-changes.ts';
import { type EndpointChange, endpointPlace } from './notification-endpoint-text.ts';

const endpoints: Watched<UnhealthyState, EndpointFactsRow, ListedEndpointRow, EndpointChange> = {
  kind: 'endpoint',
  scan: pageEndpointFacts,
  find: (writer, ids) => pageEndpoints(writer, { ids, after: 0, limit: ids.length }),
  noticeFor: (row, now) => {
    const state = endpointState(row, now);
    if (state === 'unchecked') return row.notified_state;
    return state === 'current' ? null : state;
  },
  changeOf,
  aboutOf: (change) =>
    `${endpointPlace(change)}${change.server_name === '' ? '' : ` (${change.server_name})`}`,
  store: setNotifiedEndpointState,
};

/** One check, as `notifyChanges` describes it. Scans at most `most` rows. Returns the number of changes. */
export function notifyEndpoints(vault: TimedContext, cursor: ScanCursor, most: number): Promise<number> {
  return notifyChanges(vault, endpoints, cursor, most);
}

function changeOf(row: ListedEndpointRow, next: UnhealthyState | null, now: number): EndpointChange {
  const { id, certificate, server_name, fingerprint_sha256, notified_state: previous } = row;
  return {
    ...{ id, address: addressText(row), server_name, certificate },
    state: next ?? 'current',
    previous_state: previous ?? 'current',
    reason: reasonFor(withState(row, now)),
    fingerprint_sha256,
    not_after: formatTimestampOrNull(row.not_after),
    checked_at: formatTimestampOrNull(row.checked_at),
  };
}
