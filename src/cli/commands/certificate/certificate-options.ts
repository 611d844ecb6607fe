/** Options shared by the certificate commands. */
import { challengeTypes } from '../../../base/challenge-type.ts';
import { keyTypes } from '../../../base/key-type.ts';
import { subjectFields, usages } from '../../../base/leaf-names.ts';
import { serveOptions } from '../../settings/settings.ts';

export const nameOption = {
  name: {
    type: 'string',
    valueHint: 'NAME',
    required: true,
    positional: 'or-flag',
    names: 'certificates',
    description: 'the name of the certificate',
  },
} as const;

/** How a certificate is issued. */
export const issuanceOptions = {
  issuer: {
    type: 'string',
    valueHint: 'ISSUER',
    names: 'issuers',
    description: 'the issuer (default: local-ca)',
  },
  'fallback-issuer': {
    type: 'string',
    valueHint: 'ISSUER',
    names: 'issuers',
    description: 'the issuer to use when the first one keeps failing and expiry is near',
  },
  'key-type': {
    type: 'string',
    valueHint: 'TYPE',
    values: keyTypes,
    description: `${keyTypes.join(', ')} (default: ec256)`,
  },
  profile: {
    type: 'string',
    valueHint: 'PROFILE',
    description: 'a profile of the issuer: one that the ACME CA offers, or one of "vault issuer profile"',
  },
  challenge: {
    type: 'string',
    valueHint: 'TYPE',
    values: challengeTypes,
    description: `${challengeTypes.join(', ')} (default: dns-01 where a DNS provider has the zone, else http-01)`,
  },
} as const;

/** What only the private CA issues. */
export const leafOptions = {
  usage: {
    type: 'string',
    valueHint: 'USAGE',
    values: usages,
    description: `${usages.join(', ')}: what the private CA issues it for (default: both)`,
  },
  uri: {
    type: 'string',
    valueHint: 'URI',
    multiple: true,
    description: 'a URI in the certificate, such as spiffe://example.org/web',
  },
  email: {
    type: 'string',
    valueHint: 'ADDRESS',
    multiple: true,
    description: 'an email address in the certificate',
  },
  subject: {
    type: 'string',
    valueHint: 'FIELD=VALUE',
    multiple: true,
    description: `a field of the subject: ${subjectFields.join(', ')} (default: CN is the first domain)`,
  },
} as const;

/** For commands that can run a renewal themselves. */
export const waitOptions = {
  wait: { type: 'boolean', description: 'show progress and wait until the renewal finishes' },
  resolver: serveOptions.resolver,
  'acme-drafts': serveOptions['acme-drafts'],
} as const;
