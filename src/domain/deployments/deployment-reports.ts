/** Takes reports: news are written and audited, everything else that clients report is written behind. */
import { Problem } from '../../base/problem.ts';
import {
  findDeployment,
  hasDeployments,
  insertDeployment,
  type OwnedDeploymentRow,
  updateDeployment,
} from '../../db/tables/deployments.ts';
import type { KeyUse } from '../access/key-use.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import type { DeploymentReport } from './deployment-inputs.ts';
import type { DeploymentTarget } from './deployment-removal.ts';
import { silentAt } from './deployment-state.ts';

/** The maximum number of deployments that an API key reports: a large fleet may share one. */
export const deploymentsPerKey = 10_000;

export type ReportContext = TimedContext & {
  readonly keyUse: Pick<KeyUse, 'noteDeployment' | 'forgetDeployment'>;
};

/** What is news: a change of it is written immediately and recorded. */
export type News = Pick<OwnedDeploymentRow, 'version' | 'fingerprint_sha256' | 'reload' | 'verify'> & {
  readonly error: boolean;
};

/**
 * Stores the report of a deployment that the client calls `name`. Without news it costs no transaction: it is written
 * behind with others. Throws `certificate_not_found`, `deployment_exists` if another active API key reports it, and
 * `too_many_deployments` for a new one of a key that has `deploymentsPerKey`.
 */
export async function reportDeployment(
  { db, world, keyUse }: ReportContext,
  actor: Actor,
  apiKeyId: number,
  target: DeploymentTarget,
  report: DeploymentReport,
): Promise<void> {
  const now = world.now();
  const row = rowOf(report, now);
  const { id: certificateId } = await requireCertificate(db.reader, target.certificate);
  const known = await findDeployment(db.reader, certificateId, target.name);
  if (known?.api_key_id === apiKeyId && isSame(newsOf(known), newsOf(row))) {
    keyUse.noteDeployment({ id: known.id, ...row });
    return;
  }
  const id = await db.write(async (writer) => {
    const certificate = await requireCertificate(writer, target.certificate);
    const old = await findDeployment(writer, certificate.id, target.name);
    const news = newsOf(row);
    const resource = `certificate:${certificate.name}`;
    const detail = { deployment: target.name, host: row.host, ...news };
    if (old === undefined) {
      if (await hasDeployments(writer, apiKeyId, deploymentsPerKey)) {
        throw new Problem('too_many_deployments', {
          detail: `The API key reports ${deploymentsPerKey} deployments, the maximum.`,
        });
      }
      const owned = { certificate_id: certificate.id, api_key_id: apiKeyId, name: target.name };
      await insertDeployment(writer, { ...owned, ...row, created_at: now, changed_at: now });
      record(writer, { actor, action: 'deployment.create', resource, detail }, now);
      return undefined;
    }
    const isOwn = old.api_key_id === apiKeyId;
    if (!isOwn) refuseActiveOwner(old, now);
    const before = newsOf(old);
    const isNews = !isSame(before, news);
    await updateDeployment(writer, old.id, {
      ...row,
      api_key_id: apiKeyId,
      ...(isNews && { changed_at: now }),
    });
    if (!isOwn || isNews) {
      const previous = { ...changedOf(before, news), ...(!isOwn && { api_key: old.api_key_id }) };
      record(writer, { actor, action: 'deployment.update', resource, detail: { ...detail, previous } }, now);
    }
    return old.id;
  });
  if (id !== undefined) keyUse.forgetDeployment(id);
}

/** A client that got a new API key goes on with its deployments once the old key is revoked or has expired. */
function refuseActiveOwner({ revoked_at, expires_at }: OwnedDeploymentRow, now: number): void {
  if (revoked_at !== null || (expires_at !== null && expires_at <= now)) return;
  throw new Problem('deployment_exists', {
    hint: 'Revoke the old API key of this client, or let the client choose another id.',
  });
}

function rowOf(report: DeploymentReport, now: number) {
  const { reload, verify, ...others } = report;
  const seen = { last_seen_at: now, next_run_at: report.next_run_at };
  return {
    ...others,
    reload: reload?.result ?? null,
    reload_output: reload?.output ?? null,
    verify: verify?.result ?? null,
    verify_output: verify?.output ?? null,
    ...seen,
    silent_at: silentAt(seen),
  };
}

/** What of a report is news. */
export function newsOf({
  version,
  fingerprint_sha256,
  reload,
  verify,
  error,
}: Pick<OwnedDeploymentRow, 'version' | 'fingerprint_sha256' | 'reload' | 'verify' | 'error'>): News {
  return { version, fingerprint_sha256, reload, verify, error: error !== null };
}

function isSame(one: News, other: News): boolean {
  return Object.keys(changedOf(one, other)).length === 0;
}

/** The values before the change of those that changed. */
export function changedOf(before: News, after: News): Partial<News> {
  return Object.fromEntries(
    Object.entries(before).filter(([key, value]) => after[key as keyof News] !== value),
  );
}
