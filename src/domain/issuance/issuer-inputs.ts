/** An ACME CA as programs describe it in one JSON object: the checked input, and what must not be shown or kept as text. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import { encodePem, readPemBlocks } from '../../crypto/pem.ts';
import { createIssuerInput, updateIssuerInput } from '../inputs.ts';
import { type IssuerSecrets, knownDirectories } from './issuers.ts';

/** The bytes of an HMAC key as a CA shows it: base64url, some use base64. Undefined where the text is none. */
export function eabKeyIn(text: string): Secret | undefined {
  const bytes = Buffer.from(text.trim(), 'base64url');
  return /^[A-Za-z0-9_+/-]+=*$/.test(text.trim()) && bytes.length >= 16 ? new Secret(bytes) : undefined;
}

const eabKey = z.string().transform((text, context) => {
  const key = eabKeyIn(text);
  if (key !== undefined) return key;
  context.addIssue({
    code: 'custom',
    message: 'that is no HMAC key: give it as the CA shows it, letters, digits, - and _',
  });
  return z.NEVER;
});

const trust = z.string().transform((text, context) => {
  const certificates = certificatesIn(text);
  if (certificates !== undefined) return certificates;
  context.addIssue({
    code: 'custom',
    message: 'that is no trust root: give PEM blocks that begin with -----BEGIN CERTIFICATE-----',
  });
  return z.NEVER;
});

const secrets = {
  eab_hmac_key: eabKey.optional().describe('the HMAC key of the external account binding, in base64url'),
  ca_pem: trust.optional().describe("certificates to trust for the CA's HTTPS, in place of the public ones"),
  accept_terms: z.boolean().default(false).describe("accepts the CA's terms of service"),
};

/** `directory_url` may be left out where the name is that of a known directory. */
export const addIssuerInput = z.strictObject({
  ...createIssuerInput.shape,
  directory_url: createIssuerInput.shape.directory_url.optional(),
  ...secrets,
});

/** What of an issuer may change; what is left out stays, and null takes it back. */
export const changeIssuerInput = z.strictObject({
  ...updateIssuerInput.shape,
  ...secrets,
  ca_pem: secrets.ca_pem
    .nullable()
    .describe("certificates to trust for the CA's HTTPS; null for the public ones"),
});

/** The parts of an input that `addIssuer` and `updateIssuer` take apart. */
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

/** The certificates of a PEM text in clean PEM, or undefined where it has none or something else. */
export function certificatesIn(text: string): string | undefined {
  try {
    const blocks = readPemBlocks(text, 'ca_pem').filter(({ label }) => label === 'CERTIFICATE');
    if (blocks.length === 0 || !blocks.every(({ der }) => new X509Certificate(der).raw.equals(der))) {
      return undefined;
    }
    return blocks.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
  } catch {
    // Whatever OpenSSL or the reader of PEM say: one sentence is enough.
    return undefined;
  }
}
