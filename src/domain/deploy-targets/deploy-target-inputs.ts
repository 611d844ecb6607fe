/** Input schemas for deploy targets, shared by the API and the command line. */
import { z } from 'zod';
import { certName, issuerName } from '../input-strings.ts';

/** The maximum number of certificates of a target. */
export const maxTargetCertificates = 1000;

const certificates = z
  .array(certName)
  .max(maxTargetCertificates, `a target has at most ${maxTargetCertificates} certificates`)
  .transform((names) => [...new Set(names)])
  .describe('the certificates that the vault installs there');

export const createDeployTargetInput = z.strictObject({
  name: issuerName,
  type: z.string(),
  certificates: certificates.default([]),
});

export type CreateDeployTargetInput = z.output<typeof createDeployTargetInput>;

/** Changes to a target; omitted fields stay the same. */
export const updateDeployTargetInput = z.strictObject({ certificates: certificates.optional() });

export type UpdateDeployTargetInput = z.output<typeof updateDeployTargetInput>;
