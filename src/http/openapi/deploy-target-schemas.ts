/** Schemas of deploy targets: where the vault brings certificates. */
import { z } from 'zod';
import {
  createDeployTargetInput,
  updateDeployTargetInput,
} from '../../domain/deploy-targets/deploy-target-inputs.ts';
import {
  type DeployTargetSummary,
  type DeployTargetView,
  type TargetCertificateView,
  targetCertificateStates,
} from '../../domain/deploy-targets/deploy-target-views.ts';
import { targetTypes } from '../../targets/target-types.ts';
import { newTypeSettings, settingsType, time, typeSettings } from './schemas.ts';

const summary = z.strictObject({
  name: z.string(),
  type: z.string().describe(`one of ${[...targetTypes.keys()].join(', ')}`),
  host: z.string().describe('the machine or service'),
  counts: z
    .strictObject({ current: z.int(), waiting: z.int(), failing: z.int() })
    .describe('how many certificates are in which state'),
  created_at: time,
  changed_at: time.describe('when settings or certificates last changed'),
});

export const deployTargetSummarySchema = summary.meta({
  id: 'DeployTargetSummary',
}) satisfies z.ZodType<DeployTargetSummary>;

export const targetCertificateSchema = z
  .strictObject({
    certificate: z.string(),
    destination: z.string().describe('where it goes on the host'),
    state: z
      .enum(targetCertificateStates)
      .describe('waiting: the current version is not installed yet; failing: the last attempt failed'),
    version: z.int().nullable().describe('the version that is installed; null for none'),
    current_version: z.int().nullable().describe('of the certificate; null before the first one'),
    attempts: z.int().describe('failed ones in a row'),
    error: z.string().nullable().describe('why the last attempt failed'),
    next_attempt_at: time
      .nullable()
      .describe('when the vault installs it, or checks that it is still installed; null for neither'),
  })
  .meta({ id: 'TargetCertificate' }) satisfies z.ZodType<TargetCertificateView>;

export const deployTargetSchema = z
  .strictObject({ ...summary.shape, certificates: z.array(targetCertificateSchema) })
  .meta({ id: 'DeployTarget' }) satisfies z.ZodType<DeployTargetView>;

export const addDeployTargetBody = z.strictObject({
  ...createDeployTargetInput.shape,
  settings: typeSettings,
});

export const changeDeployTargetBody = z.strictObject({
  ...updateDeployTargetInput.shape,
  settings: newTypeSettings,
});

export const deployTargetTypeSchema = settingsType('vault deploy-target add').meta({
  id: 'DeployTargetType',
});
