/** Where a certificate is installed, as deployments report it and checks of endpoints see it. */
import { pageDeploymentFacts, pageDeployments } from '../../db/tables/deployments.ts';
import { pageEndpoints } from '../../db/tables/endpoints.ts';
import type { TimedContext } from '../contexts.ts';
import { stateOf } from '../deployments/deployments.ts';
import { addressText } from '../endpoints/endpoint-inputs.ts';
import { withState } from '../endpoints/endpoints.ts';

/** Rows read at a time. */
const rowsAtOnce = 500;

/**
 * How many places have at least this version, live, and how many are known: deployments that are not silent, and
 * endpoints that serve a version of the certificate.
 */
export async function placesOf(
  { db, world }: TimedContext,
  certificateId: number,
  version: number,
): Promise<{ readonly live: number; readonly places: number }> {
  let live = 0;
  let places = 0;
  for (let after = 0; ; ) {
    const rows = await pageDeploymentFacts(db.reader, after, rowsAtOnce, certificateId);
    for (const row of rows) {
      const state = stateOf(row, world.now());
      if (state === 'silent') continue;
      places += 1;
      if ((row.version ?? 0) >= version && state !== 'failing') live += 1;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsAtOnce) break;
    after = last.id;
  }
  for (let after = 0; ; ) {
    const rows = await pageEndpoints(db.reader, { certificateId, after, limit: rowsAtOnce });
    for (const row of rows) {
      if (row.version === null || withState(row, world.now()).state === 'unreachable') continue;
      places += 1;
      if (row.version >= version) live += 1;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsAtOnce) break;
    after = last.id;
  }
  return { live, places };
}

/** The first hosts and endpoints of a certificate; hosts that are silent, too. */
export async function namedPlaces(
  { db }: TimedContext,
  certificateId: number,
  limit: number,
): Promise<{ readonly hosts: string[]; readonly endpoints: string[] }> {
  const page = { certificateId, after: 0, limit };
  const hosts = (await pageDeployments(db.reader, page)).map(({ host }) => host);
  const endpoints = (await pageEndpoints(db.reader, page)).map((row) => addressText(row));
  return { hosts: [...new Set(hosts)], endpoints: [...new Set(endpoints)] };
}
