/** Schemas of deployments: which host has which version of a certificate. */
import { z } from 'zod';
import { deploymentStates } from '../../domain/deployments/deployment-state.ts';
import type { DeploymentView } from '../../domain/deployments/deployments.ts';
import type { RolloutView } from '../../domain/deployments/rollout.ts';
import { labelFilter } from '../../domain/labels/label-inputs.ts';
import { digits, limit, time } from './schemas.ts';

const step = z
  .strictObject({ result: z.enum(['ok', 'failed']), output: z.string().nullable() })
  .nullable()
  .describe('null if there is no such step, or if it has not run yet; output is its last line');

export const deploymentSchema = z
  .strictObject({
    id: z
      .string()
      .describe("the client's id, unique per certificate; of a deploy target it begins with deploy-target:"),
    certificate: z.string(),
    host: z.string(),
    job: z.string(),
    destination: z.string(),
    state: z
      .enum(deploymentStates)
      .describe(
        'silent: no report for two schedules; failing: the last run, its reload or its verification failed; outdated: an older version although the schedule is over',
      ),
    version: z.int().nullable().describe('the version that is installed; null for none'),
    current_version: z.int().nullable().describe('of the certificate; null before the first one'),
    fingerprint_sha256: z.string().nullable(),
    reload: step,
    verify: step,
    error: z.string().nullable().describe('why the last run failed before the reload'),
    next_run_at: time.nullable(),
    client_version: z.string().nullable(),
    api_key: z
      .strictObject({ id: z.int(), name: z.string() })
      .nullable()
      .describe('the API key that reports it; null if the vault installs it'),
    deploy_target: z
      .string()
      .nullable()
      .describe('the target that the vault installs it on; null if a client reports it'),
    created_at: time.describe('when it was first reported'),
    changed_at: time.describe('when version, fingerprint or a result last changed'),
    last_seen_at: time.describe('when it was last reported'),
  })
  .meta({ id: 'Deployment' }) satisfies z.ZodType<DeploymentView>;

export const rolloutSchema = z
  .strictObject({
    certificate: z.string(),
    version: z.int().nullable().describe('the current version; null before the first one'),
    issued_at: time.nullable(),
    deployments: z.int().describe('all that are not silent'),
    fetched: z.int().describe('those that reported this version, or a newer one, as installed'),
    live: z.int().describe('those of them whose last run, reload and verification did not fail'),
    silent: z.int().describe('those that no longer report'),
  })
  .meta({ id: 'Rollout' }) satisfies z.ZodType<RolloutView>;

const page = {
  limit,
  after: digits(z.int().min(1)).optional().describe('the cursor from the Link header'),
  state: z.enum(deploymentStates).optional(),
};

export const deploymentsOfCertificateQuery = z.strictObject(page);

export const deploymentsQuery = z.strictObject({
  ...page,
  label: labelFilter.optional(),
  api_key: digits(z.int().min(1)).optional().describe('the id of an API key: only what it reports'),
  host: z.string().max(512).optional().describe('only those of this host'),
});
