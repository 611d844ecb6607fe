/** Options that several of the `vault acme-client` commands take. */
import { validationTypes } from '../../../domain/acme-server/clients/acme-client-inputs.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { labelOption } from '../label-options.ts';

export const clientOption = {
  id: {
    type: 'string',
    valueHint: 'ID',
    required: true,
    positional: 'or-flag',
    description: 'the id or the name of the client',
  },
} as const;

/** What a client may order, from where, and until when. */
export const clientRights = {
  domain: {
    type: 'string',
    valueHint: 'PATTERN',
    multiple: true,
    description:
      'names it may order: www.example.com, "*.example.com" for all below example.com, "*" for any DNS name, or an IP network',
  },
  issuer: {
    type: 'string',
    valueHint: 'NAME',
    multiple: true,
    names: 'issuers',
    description: 'an issuer it may use (default: local-ca)',
  },
  profile: {
    type: 'string',
    valueHint: 'ISSUER/NAME',
    multiple: true,
    description: 'a profile of a private CA it may use (default: any)',
  },
  'allow-ip': {
    type: 'string',
    valueHint: 'CIDR',
    multiple: true,
    description: 'an address or network it may connect from, such as 192.0.2.0/24 (default: any)',
  },
  'expires-at': {
    type: 'string',
    valueHint: 'TIME',
    description:
      'when it expires: 90d for in 90 days, 2030-01-31 for the start of that day in UTC, or 2030-01-31T00:00:00Z (default: never)',
  },
  ...labelOption,
  rate: {
    type: 'string',
    valueHint: 'N',
    description:
      'new orders per hour, or none for no limit (default: none for private CAs, 50 if an issuer is a public CA)',
  },
  validate: {
    type: 'string',
    valueHint: 'TYPES',
    values: ['none', ...validationTypes],
    description:
      'challenges by which the vault validates names, separated by commas: http-01, tls-alpn-01, dns-01; or none (default: none)',
  },
} as const;

/** The values of a repeatable option; undefined if it is not given. */
export function given(values: readonly string[]): readonly string[] | undefined {
  return values.length > 0 ? values : undefined;
}

/** The rate of `--rate`: a number, null for none, undefined if not given. */
export function rateOf(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Misuse(
    `--rate: "${text}" is not a number of orders per hour`,
    'Write a number such as 20, or none.',
  );
}

/** The challenge types of `--validate`; undefined if it is not given. */
export function validationOf(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  return text === 'none' ? [] : text.split(',').map((type) => type.trim());
}
