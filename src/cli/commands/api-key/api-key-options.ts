/** Options that several of the `vault api-key` commands take. */
import { roles } from '../../../base/role.ts';
import { scopes } from '../../../base/scope.ts';
import { grantOptions, labelOption } from '../label-options.ts';

export const idOption = {
  id: {
    type: 'string',
    valueHint: 'ID',
    required: true,
    positional: 'or-flag',
    description: 'the id or the name of the key',
  },
} as const;

/** What a key may do, from where, and until when. */
export const rightsOptions = {
  scope: {
    type: 'string',
    valueHint: 'SCOPE',
    multiple: true,
    values: scopes,
    description: scopes.join(', '),
  },
  certificate: {
    type: 'string',
    valueHint: 'NAME',
    multiple: true,
    names: 'certificates',
    description: 'a certificate the key may read, or "*" for all, including future ones',
  },
  'certificate-label': grantOptions['certificate-label'],
  'allow-ip': {
    type: 'string',
    valueHint: 'CIDR',
    multiple: true,
    description: 'an address or network the key may be used from, such as 192.0.2.0/24 (default: any)',
  },
  profile: {
    type: 'string',
    valueHint: 'ISSUER/PROFILE',
    multiple: true,
    description: 'a profile of a private CA; the key has certificates issued with no others (default: any)',
  },
  role: {
    type: 'string',
    valueHint: 'ROLE',
    values: roles,
    description: 'let the key administer the vault over HTTP: viewer, operator or admin (default: nothing)',
  },
  reach: grantOptions.reach,
  ...labelOption,
  'client-certificate': {
    type: 'string',
    valueHint: 'NAME',
    names: 'certificates',
    description:
      'a certificate of a private CA; the key works only over HTTPS with it as client certificate (default: none)',
  },
  'expires-at': {
    type: 'string',
    valueHint: 'TIME',
    description:
      'when the key expires: 90d for in 90 days, 2030-01-31 for the start of that day in UTC, or 2030-01-31T00:00:00Z (default: never)',
  },
} as const;
