/** Input schemas of administrators, shared by the API and the command line. */
import { z } from 'zod';
import { roles } from '../../base/role.ts';
import { Secret } from '../../base/secret.ts';
import { asciiName } from '../input-strings.ts';
import { anyLabels } from '../labels/label-inputs.ts';
import { maxPasswordLength } from './password-policy.ts';

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$/;

/** As JSON Schema says it. */
export const administratorNamePattern = namePattern.source;

export const administratorName = asciiName(
  namePattern,
  'a name has up to 64 letters, digits and . _ @ + -, and starts with a letter or digit',
);

/** A password as typed. `Passwords.choose` checks a new one against the policy, which depends on the name too. */
export const typedPassword = z
  .string()
  .min(1, 'password is missing')
  .max(maxPasswordLength, `a password has at most ${maxPasswordLength} bytes`)
  .transform((text) => new Secret(text));

export const createAdministratorInput = z.strictObject({
  name: administratorName,
  password: typedPassword,
  role: z
    .enum(roles)
    .default('admin')
    .describe('viewer reads, operator manages certificates, admin everything'),
  reach: anyLabels
    .default([])
    .describe('labels that confine what a viewer or operator sees and changes; empty for everything'),
});

/** Who an administrator is stays; what they may do changes. */
export const updateAdministratorInput = z
  .strictObject({
    role: z.enum(roles).optional(),
    reach: createAdministratorInput.shape.reach.unwrap().optional(),
  })
  .refine(({ role, reach }) => (role ?? reach) !== undefined, 'must contain role or reach');

export type UpdateAdministratorInput = z.output<typeof updateAdministratorInput>;

export type CreateAdministratorInput = z.output<typeof createAdministratorInput>;
