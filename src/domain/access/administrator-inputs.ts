/** Input schemas of administrators, shared by the API and the command line. */
import { z } from 'zod';
import { roles } from '../../base/role.ts';
import { Secret } from '../../base/secret.ts';
import { asciiName, profileReference } from '../input-strings.ts';
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
  profiles: z
    .array(profileReference)
    .max(100, 'an administrator has at most 100 profiles')
    .transform((list) => [...new Set(list)])
    .default([])
    .describe(
      'profiles of private CAs, as issuer/profile: an operator may have certificates issued with no others; empty for any',
    ),
});

/** Who an administrator is stays; what they may do changes. */
export const updateAdministratorInput = z
  .strictObject({
    role: z.enum(roles).optional(),
    reach: createAdministratorInput.shape.reach.unwrap().optional(),
    profiles: createAdministratorInput.shape.profiles.unwrap().optional(),
  })
  .refine(
    ({ role, reach, profiles }) => (role ?? reach ?? profiles) !== undefined,
    'must contain role, reach or profiles',
  );

export type UpdateAdministratorInput = z.output<typeof updateAdministratorInput>;

export type CreateAdministratorInput = z.output<typeof createAdministratorInput>;
