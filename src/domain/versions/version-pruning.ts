/** Removes superseded versions with their private keys, in short transactions between which others write. */
import { day } from '../../base/duration.ts';
import type { Writer } from '../../db/database.ts';
import {
  deletePastRenewals,
  deletePastVersions,
  listPastVersions,
  type PruningCandidate,
  pageWithVersions,
} from '../../db/tables/certificates/past-versions.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import { record, system } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';

/** How many versions of a certificate are kept by default, the current one included. */
export const defaultKeepVersions = 10;

/** An expired version is kept this long, regardless of its number. */
const keptExpired = 30 * day;

/** Certificates read at a time. */
const certificatesPerPage = 100;

/** Versions removed in one transaction: a few milliseconds. */
const versionsPerStep = 50;

/** Renewals removed with them: most stored a version, others failed. */
const renewalsPerStep = 200;

/**
 * Removes the versions that expired 30 days ago and are not among the last `keep` of their certificate. Each
 * transaction has an event. Returns how many versions were removed.
 */
export async function pruneVersions(
  vault: TimedContext,
  keep: number,
  signal?: AbortSignal,
): Promise<number> {
  const { db, world } = vault;
  let removed = 0;
  for (let after = 0; signal?.aborted !== true; ) {
    const page = await pageWithVersions(db.reader, { after, keep, limit: certificatesPerPage });
    for (const certificate of page) removed += await pruneCertificate(vault, certificate, keep, signal);
    after = page.at(-1)?.id ?? after;
    if (page.length < certificatesPerPage) break;
    await world.turn();
  }
  return removed;
}

/** Remembers how many versions were removed on purpose: a backup with fewer is not one of a vault that lost them. */
export async function countPrunedVersions(writer: Writer, removed: number): Promise<void> {
  if (removed === 0) return;
  const before = Number((await readSetting(writer, 'pruned-versions')) ?? 0);
  await putSetting(writer, 'pruned-versions', before + removed);
}

async function pruneCertificate(
  { db, world }: TimedContext,
  certificate: PruningCandidate,
  keep: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  const now = world.now();
  const which = { keep, expiredBefore: now - keptExpired, limit: versionsPerStep };
  let removed = 0;
  while (signal?.aborted !== true) {
    if ((await listPastVersions(db.reader, certificate, { ...which, limit: 1 })).length === 0) break;
    const some = await db.write(async (writer) => {
      const versions = await listPastVersions(writer, certificate, which);
      if (versions.length === 0) return 0;
      await deletePastVersions(writer, certificate.id, versions);
      const lastVersion = versions.at(-1) ?? 0;
      const ended = { lastVersion, endedBefore: which.expiredBefore, limit: renewalsPerStep };
      await deletePastRenewals(writer, certificate.id, ended);
      await countPrunedVersions(writer, versions.length);
      const detail = { versions: versions.length, first: versions[0] ?? 0, last: lastVersion };
      const resource = `certificate:${certificate.name}`;
      record(writer, { actor: system, action: 'certificate.prune', resource, detail }, now);
      return versions.length;
    });
    removed += some;
    if (some < versionsPerStep) break;
    await world.turn();
  }
  return removed;
}
