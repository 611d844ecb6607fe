/** Options of the commands for profiles of private CAs. */
import { keyTypes } from '../../../base/key-type.ts';
import { subjectFields, usages } from '../../../base/leaf-names.ts';
import { nameTypes } from '../../../domain/private-ca/profile-settings.ts';
import type { Arguments } from '../../terminal/arguments.ts';

export const issuerOption = {
  issuer: {
    type: 'string',
    valueHint: 'ISSUER',
    required: true,
    positional: 'or-flag',
    names: 'issuers',
    description: 'the private CA',
  },
} as const;

export const profileOption = {
  ...issuerOption,
  name: {
    type: 'string',
    valueHint: 'PROFILE',
    required: true,
    positional: 'or-flag',
    description: 'the name of the profile',
  },
} as const;

export const settingOptions = {
  usage: {
    type: 'string',
    valueHint: 'USAGE',
    values: usages,
    description: `${usages.join(', ')}: the usage of its certificates (default: any)`,
  },
  'key-type': {
    type: 'string',
    valueHint: 'TYPE',
    multiple: true,
    values: keyTypes,
    description: 'a permitted type of keys; the first is that of new keys (default: any)',
  },
  lifetime: {
    type: 'string',
    valueHint: 'TIME',
    description: 'how long certificates are valid that ask for no lifetime (default: that of the CA)',
  },
  'max-lifetime': {
    type: 'string',
    valueHint: 'TIME',
    description: 'the longest lifetime that a certificate may ask for (default: any)',
  },
  subject: {
    type: 'string',
    valueHint: 'FIELD=VALUE',
    multiple: true,
    description: `a field of the subject that each certificate has: ${subjectFields.join(', ')}`,
  },
  'name-type': {
    type: 'string',
    valueHint: 'KIND',
    multiple: true,
    values: nameTypes,
    description: `a permitted kind of names: ${nameTypes.join(', ')} (default: all)`,
  },
  'permit-domain': {
    type: 'string',
    valueHint: 'DOMAIN',
    multiple: true,
    description: 'a permitted domain, with all names below it (default: what the CA permits)',
  },
  'permit-ip': {
    type: 'string',
    valueHint: 'NETWORK',
    multiple: true,
    description: 'a network whose addresses are permitted',
  },
} as const;

/** The members of the input, for the options that are given. */
export function settingsIn(
  args: Arguments<typeof settingOptions>,
): Readonly<Record<string, string | readonly string[]>> {
  const named = {
    usage: args.usage,
    key_types: args['key-type'],
    lifetime: args.lifetime,
    max_lifetime: args['max-lifetime'],
    subject: args.subject,
    name_types: args['name-type'],
    permit_domains: args['permit-domain'],
    permit_ips: args['permit-ip'],
  };
  return Object.fromEntries(
    Object.entries(named).flatMap(([key, value]) =>
      value === undefined || value.length === 0 ? [] : [[key, value] as const],
    ),
  );
}
