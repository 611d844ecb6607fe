/** Input schemas of private CAs, shared by the API and the command line. */
import { z } from 'zod';
import { identifierPattern, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { maxReturnedFileSize } from '../../crypto/bundles/returned-authority.ts';
import { ipNetworkPattern, ipNetworkRule, parseIpNetwork } from '../../net/ip-network.ts';
import { controlCharacters, issuerName, keyType, lifetime, parsed, quoted } from '../input-strings.ts';

/** What is said about another type of issuer. */
export const issuerTypeError = (issue: { readonly code?: string | undefined }) =>
  issue.code === 'invalid_union' ? 'a type of issuer is acme or local-ca' : undefined;

/** A domain in the constraints of a private CA. */
const permittedDomain = parsed(
  (text) => {
    const found = parseIdentifier(text);
    return found === undefined || isAddress(found) || found.startsWith('*.') ? undefined : String(found);
  },
  (text) =>
    `${quoted(text)} is not a domain such as example.com, which stands for itself and all names below it`,
  { pattern: identifierPattern },
);

/** A network in the constraints of a private CA. */
const permittedNetwork = parsed(
  (text) => parseIpNetwork(text.trim())?.text,
  (text) => `${quoted(text)} is not a network: ${ipNetworkRule}`,
  { pattern: ipNetworkPattern },
);

/** The longest that leaves space for what is added to tell CA certificates apart (RFC 5280 §A.1, ub-common-name). */
const maxCommonNameLength = 40;

/** The name of a private CA in its certificates. */
const commonName = z
  .string()
  .trim()
  .min(1, 'a common name has at least one character')
  .max(maxCommonNameLength, `a common name of a CA has at most ${maxCommonNameLength} characters`)
  .refine((text) => !controlCharacters.test(text), 'a common name must not contain control characters');

export const permitDomains = z
  .array(permittedDomain)
  .max(100, 'a private CA has at most 100 permitted domains')
  .transform((list) => [...new Set(list)])
  .describe('domains that the CA issues for, with all names below them');

export const permitIps = z
  .array(permittedNetwork)
  .max(100, 'a private CA has at most 100 permitted networks')
  .transform((list) => [...new Set(list)])
  .describe('networks whose addresses the CA issues for');

/** What a private CA can be given; without domains and networks, it issues for any name. */
const privateCaSettings = {
  permit_domains: permitDomains.optional(),
  permit_ips: permitIps.optional(),
  lifetime: lifetime.optional().describe('how long certificates are valid that ask for no lifetime; 90d'),
  key_type: keyType.optional().describe('the type of new keys that ask for none; ec256'),
};

export const createPrivateCaInput = z.strictObject({
  type: z.literal('local-ca').describe('a private CA of the vault'),
  name: issuerName,
  common_name: commonName.optional().describe('the common name of its root'),
  ...privateCaSettings,
  path_length: z
    .int()
    .min(1, 'a path length is at least 1, because an intermediate follows the root')
    .max(5, 'a path length is at most 5')
    .optional()
    .describe('how many CAs may follow its root in a chain; 1'),
});

export type CreatePrivateCaInput = z.output<typeof createPrivateCaInput>;

/** Changes to a private CA; null, or an empty list, clears a setting. */
export const updatePrivateCaInput = z.strictObject({
  permit_domains: permitDomains.nullable().optional(),
  permit_ips: permitIps.nullable().optional(),
  lifetime: lifetime.nullable().optional(),
  key_type: keyType.nullable().optional(),
});

/** For the CA of a company, which signs the intermediate of a private CA. */
export const caRequestInput = z.strictObject({
  new: z.boolean().optional().describe('generate another key; the CSR that is pending becomes void'),
});

export const importCaInput = z.strictObject({
  chain: z
    .string()
    .min(1, 'chain is empty')
    .max(maxReturnedFileSize, 'chain is larger than 64 KiB')
    .meta({ pattern: '-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----' })
    .describe(
      'PEM in any order: the certificate for the CSR, the intermediates and the self-signed root of the company',
    ),
  force: z
    .boolean()
    .optional()
    .describe(
      "import although the company's CA does not permit names of certificates, whose renewals fail then",
    ),
});

export type UpdatePrivateCaInput = z.output<typeof updatePrivateCaInput>;
