/** Deletes deployments whose job was removed or whose host is gone. */
import { Problem } from '../../base/problem.ts';
import { deleteDeployment as deleteRow, findDeployment } from '../../db/tables/deployments.ts';
import type { KeyUse } from '../access/key-use.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';

/** A certificate, and the client's id for the deployment. */
export type DeploymentTarget = { readonly certificate: string; readonly name: string };

export type RemovalContext = TimedContext & { readonly keyUse: Pick<KeyUse, 'forgetDeployment'> };

/**
 * Deletes a deployment, and records the deletion. A report that is not written yet is dropped with it. With `apiKeyId`
 * only a deployment of this API key. Throws `certificate_not_found`, `deployment_not_found`, and `forbidden` for a
 * deployment of another key.
 */
export async function deleteDeployment(
  { db, world, keyUse }: RemovalContext,
  actor: Actor,
  target: DeploymentTarget,
  apiKeyId?: number,
): Promise<void> {
  const id = await db.write(async (writer) => {
    const certificate = await requireCertificate(writer, target.certificate);
    const row = await findDeployment(writer, certificate.id, target.name);
    if (row === undefined) {
      throw new Problem('deployment_not_found', { hint: 'Try: vault fleet status' });
    }
    if (apiKeyId !== undefined && row.api_key_id !== apiKeyId) {
      throw new Problem('forbidden', { detail: 'Another API key reports this deployment.' });
    }
    await deleteRow(writer, row.id);
    const detail = {
      ...{ deployment: row.name, host: row.host, job: row.job },
      ...{ version: row.version, api_key: row.api_key_id },
    };
    const resource = `certificate:${certificate.name}`;
    record(writer, { actor, action: 'deployment.delete', resource, detail }, world.now());
    return row.id;
  });
  keyUse.forgetDeployment(id);
}
