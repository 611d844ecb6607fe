/** Schemas of enrollments, for administrators. */
import { z } from 'zod';
import { scopes } from '../../base/scope.ts';
import { type EnrollmentView, enrollmentStates } from '../../domain/enrollments/enrollment-views.ts';
import { time } from './schemas.ts';

const enrollment = z.strictObject({
  id: z.int(),
  name: z.string(),
  prefix: z.string().describe('the public part of the token'),
  scopes: z.array(z.enum(scopes)).describe('what the keys may do'),
  certificates: z.array(z.string()).describe('["*"] for all certificates'),
  certificate_labels: z
    .array(z.string())
    .describe('labels: the keys may also access certificates with any of them'),
  allowed_networks: z
    .array(z.string())
    .describe('networks that the token and the keys work from; [] for any'),
  bind_address: z
    .boolean()
    .describe('whether each key works only from the address that the token was exchanged at'),
  labels: z.array(z.string()).describe('labels of the enrollment and of the keys, sorted'),
  max_uses: z.int().describe('how many API keys the token creates'),
  uses: z.int().describe('how many it has created'),
  created_by: z.string().describe('as in the audit log'),
  created_at: time,
  expires_at: time,
  key_expires_at: time.nullable().describe('when the keys expire; null for never'),
  revoked_at: time.nullable(),
  last_used_at: time.nullable(),
  state: z.enum(enrollmentStates),
});

export const enrollmentSchema = enrollment.meta({ id: 'Enrollment' }) satisfies z.ZodType<EnrollmentView>;

export const createdEnrollmentSchema = z
  .strictObject({ ...enrollment.shape, token: z.string().describe('the token, shown only once') })
  .meta({ id: 'CreatedEnrollment' });

export const revokedEnrollmentSchema = z
  .strictObject({
    ...enrollment.shape,
    revoked_api_keys: z.int().describe('API keys that this request revoked'),
  })
  .meta({ id: 'RevokedEnrollment' });
