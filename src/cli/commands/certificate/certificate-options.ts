/** Options that several certificate commands share. */
import { challengeTypes } from '../../../base/challenge-type.ts';
import { keyTypes } from '../../../base/key-type.ts';
import { serveOptions } from '../../settings/settings.ts';

export const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    names: 'certificates',
    description: 'the name of the certificate',
  },
} as const;

/** What a certificate shall be, and who makes it. */
export const wishOptions = {
  issuer: {
    type: 'string',
    valueHint: 'ISSUER',
    names: 'issuers',
    description: 'who issues it (default: local-ca)',
  },
  'fallback-issuer': {
    type: 'string',
    valueHint: 'ISSUER',
    names: 'issuers',
    description: 'who is asked when the issuer keeps failing and the end is near',
  },
  'key-type': {
    type: 'string',
    valueHint: 'TYPE',
    values: keyTypes,
    description: `${keyTypes.join(', ')} (default: ec256)`,
  },
  profile: { type: 'string', valueHint: 'PROFILE', description: "the CA's certificate profile" },
  challenge: {
    type: 'string',
    valueHint: 'TYPE',
    values: challengeTypes,
    description: `${challengeTypes.join(', ')} (default: dns-01 where a DNS provider has the zone, else http-01)`,
  },
} as const;

/** For commands that may carry a renewal out themselves. */
export const waitOptions = {
  wait: { type: 'boolean', description: 'show the steps, and end when the renewal has ended' },
  resolver: serveOptions.resolver,
  'acme-drafts': serveOptions['acme-drafts'],
} as const;
