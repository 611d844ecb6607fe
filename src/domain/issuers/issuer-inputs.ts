/** The input schemas of issuers in JSON, with the secrets separated from the rest. */

import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { createIssuerInput, updateIssuerInput } from '../inputs.ts';
import {
  createPrivateCaInput,
  issuerTypeError,
  updatePrivateCaInput,
} from '../private-ca/private-ca-inputs.ts';
import { trust } from '../trusted-certificates.ts';
import { type IssuerSecrets, knownDirectories } from './issuers.ts';

/** The bytes of an HMAC key in base64url (some CAs use base64). Undefined if the text is not a key. */
export function eabKeyIn(text: string): Secret | undefined {
  const bytes = Buffer.from(text.trim(), 'base64url');
  return /^[A-Za-z0-9_+/-]+=*$/.test(text.trim()) && bytes.length >= 16 ? new Secret(bytes) : undefined;
}

const eabKey = z.string().transform((text, context) => {
  const key = eabKeyIn(text);
  if (key !== undefined) return key;
  context.addIssue({
    code: 'custom',
    message: 'not an HMAC key; paste it as shown by the CA (letters, digits, - and _)',
  });
  return z.NEVER;
});

const secrets = {
  eab_hmac_key: eabKey.optional().describe('the HMAC key of the external account binding, in base64url'),
  ca_pem: trust.optional().describe("certificates to trust for the CA's HTTPS, in place of the public ones"),
  accept_terms: z.boolean().default(false).describe("accepts the CA's terms of service"),
};

/** `directory_url` may be omitted if the name is that of a known directory. */
const addAcmeIssuerInput = z.strictObject({
  type: z.literal('acme').optional().describe('an ACME CA; the default'),
  ...createIssuerInput.shape,
  directory_url: createIssuerInput.shape.directory_url.optional(),
  ...secrets,
});

export const addIssuerInput = z.discriminatedUnion('type', [addAcmeIssuerInput, createPrivateCaInput], {
  error: issuerTypeError,
});

const privateCaChanges = updatePrivateCaInput.shape;

/** The settings that only a private CA has. */
const ofPrivateCas = Object.keys(privateCaChanges);

/** Changes to an issuer; omitted fields stay the same, null clears a setting. */
export const changeIssuerInput = z.strictObject({
  ...updateIssuerInput.shape,
  ...secrets,
  ca_pem: secrets.ca_pem
    .nullable()
    .describe("certificates to trust for the CA's HTTPS; null for the public ones"),
  ...privateCaChanges,
  force: z
    .boolean()
    .default(false)
    .describe('change a private CA although renewals of certificates with other names fail then'),
});

/** The changes for an issuer of this type. Throws `invalid_request` for settings of the other type. */
export function changesFor(type: string, { force, ...body }: z.output<typeof changeIssuerInput>) {
  const { accept_terms, ...settings } = body;
  const isPrivate = type !== 'acme';
  const given = Object.entries(settings).flatMap(([key, value]) => (value === undefined ? [] : key));
  const others = given.filter((key) => ofPrivateCas.includes(key) !== isPrivate);
  const [path = accept_terms && isPrivate ? 'accept_terms' : undefined] = others;
  if (path !== undefined) {
    const message = isPrivate ? 'is a setting of ACME CAs' : 'is a setting of private CAs';
    throw new Problem('invalid_request', { detail: `${path}: ${message}.`, errors: [{ path, message }] });
  }
  const { permit_domains, permit_ips, lifetime, key_type, ...acme } = body;
  return isPrivate
    ? { privateCa: { permit_domains, permit_ips, lifetime, key_type }, force }
    : { acme: withoutSecrets(acme) };
}

/** Splits an input into the parts that `addIssuer` and `updateIssuer` take. */
export function withoutSecrets<
  T extends { eab_hmac_key?: Secret | undefined; ca_pem?: string | null | undefined; accept_terms: boolean },
>({ eab_hmac_key, ca_pem, accept_terms, ...input }: T) {
  const hidden: IssuerSecrets = { eabKey: eab_hmac_key, ca: ca_pem, acceptsTerms: accept_terms };
  return { input, secrets: hidden };
}

/** The directory of a known name, or undefined. */
export function knownDirectory(name: string): string | undefined {
  return Object.hasOwn(knownDirectories, name) ? knownDirectories[name] : undefined;
}
