/** Input schemas of the profiles of private CAs, shared by the API and the command line. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { keyType, lifetime, parsed, profileName, quoted, usage } from '../input-strings.ts';
import { subject } from '../inputs.ts';
import { permitDomains, permitIps } from './private-ca-inputs.ts';
import { nameTypes, type ProfileSettings } from './profile-settings.ts';

const nameType = parsed(
  (text) => nameTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a kind of name: use one of ${nameTypes.join(', ')}`,
  { enum: nameTypes },
);

const unique = <T>(list: readonly T[]): T[] => [...new Set(list)];

const settings = {
  usage: usage.describe('the usage of its certificates'),
  key_types: z
    .array(keyType)
    .max(20, 'a profile has at most 20 key types')
    .transform(unique)
    .describe('the permitted types of keys; the first is that of new keys'),
  lifetime: lifetime.describe('how long certificates are valid that ask for no lifetime'),
  max_lifetime: lifetime.describe('the longest lifetime that a certificate may ask for'),
  subject: subject.describe('fields of the subject that each certificate has, such as O=Example'),
  name_types: z
    .array(nameType)
    .max(20, 'a profile has at most 20 kinds of names')
    .transform(unique)
    .describe('the permitted kinds of names; all without any'),
  permit_domains: permitDomains.describe('the permitted domains, with all names below them'),
  permit_ips: permitIps.describe('the permitted networks of addresses'),
};

export const createProfileInput = z.strictObject({
  name: profileName,
  usage: settings.usage.optional(),
  key_types: settings.key_types.optional(),
  lifetime: settings.lifetime.optional(),
  max_lifetime: settings.max_lifetime.optional(),
  subject: settings.subject.optional(),
  name_types: settings.name_types.optional(),
  permit_domains: settings.permit_domains.optional(),
  permit_ips: settings.permit_ips.optional(),
});

export type CreateProfileInput = z.output<typeof createProfileInput>;

/** Changes to a profile; null clears a setting. */
export const updateProfileInput = z.strictObject({
  usage: settings.usage.nullable().optional(),
  key_types: settings.key_types.nullable().optional(),
  lifetime: settings.lifetime.nullable().optional(),
  max_lifetime: settings.max_lifetime.nullable().optional(),
  subject: settings.subject.nullable().optional(),
  name_types: settings.name_types.nullable().optional(),
  permit_domains: settings.permit_domains.nullable().optional(),
  permit_ips: settings.permit_ips.nullable().optional(),
});

export type UpdateProfileInput = z.output<typeof updateProfileInput>;

/** The settings after a change. Throws `invalid_request` if the usual lifetime is longer than the longest. */
export function changedProfile(before: ProfileSettings, input: UpdateProfileInput): ProfileSettings {
  const after: ProfileSettings = {
    usage: value(input.usage, before.usage),
    keyTypes: input.key_types === undefined ? before.keyTypes : (input.key_types ?? []),
    lifetime: value(input.lifetime, before.lifetime),
    maxLifetime: value(input.max_lifetime, before.maxLifetime),
    subject: input.subject === undefined ? before.subject : (input.subject ?? []),
    nameTypes: input.name_types === undefined ? before.nameTypes : (input.name_types ?? []),
    permitDomains: input.permit_domains === undefined ? before.permitDomains : (input.permit_domains ?? []),
    permitIps: input.permit_ips === undefined ? before.permitIps : (input.permit_ips ?? []),
  };
  const { lifetime: usual, maxLifetime: most } = after;
  if (usual === undefined || most === undefined || usual <= most) return after;
  const message = 'the usual lifetime of a profile is not longer than its longest one';
  throw new Problem('invalid_request', {
    detail: 'The usual lifetime of a profile is not longer than its longest one.',
    errors: [{ path: 'lifetime', message }],
  });
}

/** A profile that leaves everything open. */
export const openProfile: ProfileSettings = {
  ...{ usage: undefined, keyTypes: [], lifetime: undefined, maxLifetime: undefined },
  ...{ subject: [], nameTypes: [], permitDomains: [], permitIps: [] },
};

function value<T>(given: T | null | undefined, before: T | undefined): T | undefined {
  return given === undefined ? before : (given ?? undefined);
}
