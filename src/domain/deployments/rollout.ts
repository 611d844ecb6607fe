/** How far the current version of a certificate has come: issued, fetched by its deployments, live on them. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { deploymentFacts, stateOf } from './deployments.ts';

export type RolloutView = {
  certificate: string;
  /** The current version; null before the first one. */
  version: number | null;
  issued_at: string | null;
  /** Without those that are silent, whose last report may no longer be true. */
  deployments: number;
  /** Those that reported this version, or a newer one, as installed. */
  fetched: number;
  /** Those of them whose last run, reload and verification did not fail. */
  live: number;
  silent: number;
};

/** Follows the current version of the certificate. Throws `certificate_not_found`. */
export async function rolloutOf(vault: TimedContext, name: string): Promise<RolloutView> {
  const { db, world } = vault;
  const { id, current_version: version } = await requireCertificate(db.reader, name);
  const issued = version === null ? undefined : await findVersion(db.reader, id, version);
  const counts = { deployments: 0, fetched: 0, live: 0, silent: 0 };
  const now = world.now();
  for await (const rows of deploymentFacts(vault, id)) {
    for (const row of rows) {
      const state = stateOf(row, now);
      if (state === 'silent') {
        counts.silent += 1;
        continue;
      }
      counts.deployments += 1;
      if (version === null || (row.version ?? 0) < version) continue;
      counts.fetched += 1;
      if (state === 'current') counts.live += 1;
    }
  }
  const issued_at = issued === undefined ? null : formatTimestamp(issued.created_at);
  return { certificate: name, version, issued_at, ...counts };
}

/** `version 7: issued 2026-11-22T12:00:00Z, fetched by 4 of 5, live on 3 of 5`; undefined without deployments. */
export function rolloutText(rollout: RolloutView): string | undefined {
  const { version, issued_at, deployments, fetched, live, silent } = rollout;
  if (version === null || deployments + silent === 0) return undefined;
  const counts = `fetched by ${fetched} of ${deployments}, live on ${live} of ${deployments}`;
  return `version ${version}: issued ${issued_at}, ${counts}${silent === 0 ? '' : `; ${silent} silent`}`;
}
