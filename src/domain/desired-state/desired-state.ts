/**
 * The desired state of a vault, as people keep it in a file next to their code: the schema of the document of `vault
 * apply` and `vault export`. It is built from the input schemas of commands and HTTP, so errors read the same
 * everywhere.
 */

import { z } from 'zod';
import { challengeTypes } from '../../base/challenge-type.ts';
import { describeIssue, isDefaultIssue } from '../../base/input-issue.ts';
import { keyTypes } from '../../base/key-type.ts';
import { usages } from '../../base/leaf-names.ts';
import { scopes } from '../../base/scope.ts';
import { dnsProviderTypes } from '../../dns/providers/provider-types.ts';
import { targetTypes } from '../../targets/target-types.ts';
import { createAcmeClientInput } from '../acme-server/clients/acme-client-inputs.ts';
import { createDeployTargetInput } from '../deploy-targets/deploy-target-inputs.ts';
import { certName } from '../input-strings.ts';
import {
  anyAllowlist,
  createApiKeyInput,
  createCertificateInput,
  createDnsProviderInput,
  createIssuerInput,
} from '../inputs.ts';
import { createPrivateCaInput, issuerTypeError as typeError } from '../private-ca/private-ca-inputs.ts';
import { documentVersion } from './desired-sections.ts';
import { path, secretReference } from './secret-reference.ts';

const { name: issuerName, directory_url, ...caShape } = createIssuerInput.shape;

const acmeCa = z
  .strictObject({
    type: z.literal('acme').optional(),
    directory_url: directory_url
      .optional()
      .describe('the ACME directory URL of the CA; built in for letsencrypt and letsencrypt-staging'),
    ...caShape,
    email: caShape.email.describe('the contact address for the CA'),
    eab_kid: caShape.eab_kid.describe('the key id for external account binding'),
    eab_hmac_key: secretReference.optional(),
    ca_pem: z
      .union([z.string(), z.strictObject({ file: path })], {
        error: 'write the certificates as PEM, or {file: NAME}',
      })
      .optional()
      .describe("certificates to trust for the CA's HTTPS, as PEM or {file: NAME}"),
    accept_terms: z.boolean().default(false).describe("accepts the CA's terms of service"),
  })
  .describe('an ACME CA');

const { name: __, ...privateCaShape } = createPrivateCaInput.shape;

const privateCa = z
  .strictObject({ ...privateCaShape, key_type: privateCaShape.key_type.meta({ enum: keyTypes }) })
  .describe('a private CA; "local-ca" is the built-in one');

const issuer = z.discriminatedUnion('type', [acmeCa, privateCa], { error: typeError });

const { name: providerName, ...providerShape } = createDnsProviderInput.shape;

const dnsProvider = z
  .strictObject({
    ...providerShape,
    type: providerShape.type.meta({ enum: [...dnsProviderTypes.keys()] }),
    zones: providerShape.zones.describe('the zones of this provider'),
    secret: secretReference.optional(),
  })
  .describe('a DNS provider and its zones');

const { name: _, ...certificateShape } = createCertificateInput.shape;

/** A certificate that an issuer issues, without its name. */
export const desiredCertificate = z
  .strictObject({
    ...certificateShape,
    domains: certificateShape.domains.describe('DNS names, wildcards and addresses'),
    issuer: certificateShape.issuer.describe('the issuer'),
    fallback_issuer: certificateShape.fallback_issuer.describe(
      'the issuer to use when the first one keeps failing and expiry is near',
    ),
    key_type: certificateShape.key_type
      .meta({ enum: keyTypes })
      .describe(
        'the type of the keys that the vault generates, by default that of the issuer: ec256 unless it has another',
      ),
    lifetime: certificateShape.lifetime.describe(
      'how long versions issued by the private CA are valid, such as 90d',
    ),
    challenge: certificateShape.challenge.meta({ enum: challengeTypes }),
    usage: certificateShape.usage.meta({ enum: usages }).describe('what the private CA issues it for'),
    uris: certificateShape.uris.describe('URIs such as SPIFFE IDs, from the private CA'),
    emails: certificateShape.emails.describe('email addresses, from the private CA'),
    subject: certificateShape.subject.describe('fields of the subject such as CN=alice, from the private CA'),
    auto_renew: z.boolean().default(true).describe('renew automatically'),
    disabled: z.boolean().default(false).describe('disable all renewals, including manual ones'),
  })
  .describe('a certificate that an issuer issues and renews');

/** The same for the document, where JSON Schema has to say that it needs a name. */
const namedCertificate = desiredCertificate
  .refine(
    ({ domains, uris, emails, subject, csr }) =>
      domains.length > 0 || (uris ?? emails ?? subject ?? csr) !== undefined,
    { error: 'at least one domain is required', path: ['domains'] },
  )
  .meta({
    description: 'a certificate that an issuer issues and renews',
    anyOf: ['domains', 'uris', 'emails', 'subject', 'csr'].map((name) => ({ required: [name] })),
  });

const imported = z
  .strictObject({
    fullchain_file: path
      .optional()
      .describe('certificate and chain as PEM, as for "vault certificate import"'),
    private_key_file: path.optional().describe('the private key as PEM, unless the fullchain file holds it'),
    allow_ca: z.boolean().optional().describe('accept a CA certificate, as openssl req -x509 creates it'),
    labels: certificateShape.labels,
  })
  .describe('a certificate issued elsewhere; without files, the stored one stays');

const { name: targetName, ...targetShape } = createDeployTargetInput.shape;

const deployTarget = z
  .strictObject({
    type: z.enum([...targetTypes.keys()], { error: `write one of: ${[...targetTypes.keys()].join(', ')}` }),
    certificates: targetShape.certificates,
    secret: secretReference.optional().describe('{file: NAME} with its settings, {env: NAME}, or keep'),
  })
  .describe('a place on which the vault installs certificates');

const { name: keyName, ...keyShape } = createApiKeyInput.shape;

const apiKey = z
  .strictObject({
    ...keyShape,
    scopes: keyShape.scopes.meta({ items: { type: 'string', enum: scopes } }),
    certificates: anyAllowlist.describe(
      'certificates the key may read, or "*" for all; empty if all were deleted',
    ),
    allowed_networks: keyShape.allowed_networks.describe('networks the key may be used from; empty for any'),
    expires_at: keyShape.expires_at.describe('when the key expires, such as 2030-01-31T00:00:00Z'),
    secret_file: path
      .optional()
      .describe('a file for the secret of a new key, relative to the document; never overwritten'),
  })
  .describe('an API key and its permissions');

const { name: clientName, rate, ...clientShape } = createAcmeClientInput.shape;

const acmeClient = z
  .strictObject({
    ...clientShape,
    rate: z
      .union([z.literal('none').transform(() => null), rate.unwrap().unwrap()], {
        error: 'write a number of orders per hour, or none',
      })
      .optional()
      .describe('new orders per hour, or none for no limit'),
  })
  .describe('a program that orders certificates by ACME; "vault acme-client rotate" prints its key');

/**
 * Objects by name; an empty section equals none. They become a Map, which takes every name: a record of zod drops
 * `__proto__` silently, and `--prune` would then remove the object of that name.
 */
function section<K extends z.core.$ZodRecordKey, V extends z.ZodType>(key: K, value: V) {
  const error = 'write a mapping of names to settings';
  return z
    .preprocess(
      (objects) => (isObject(objects) ? new Map(Object.entries(objects)) : (objects ?? new Map())),
      z.map(key, value, { error }),
    )
    .optional()
    .transform((objects): ReadonlyMap<z.output<K>, z.output<V>> => objects ?? new Map());
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const version = z.literal(documentVersion, { error: `write "version: ${documentVersion}"` });

const desiredState = z.strictObject({
  version,
  issuers: section(issuerName, issuer),
  dns_providers: section(providerName, dnsProvider),
  certificates: section(certName, namedCertificate),
  imported_certificates: section(certName, imported),
  deploy_targets: section(targetName, deployTarget),
  api_keys: section(keyName, apiKey),
  acme_clients: section(clientName, acmeClient),
});

export type DesiredState = z.output<typeof desiredState>;

/** The JSON Schema of the document, for editors. JSON Schema has no maps: there the sections are records. */
export function desiredStateSchema(): unknown {
  const written = z
    .strictObject({
      version,
      issuers: z.record(issuerName, issuer).nullish(),
      dns_providers: z.record(providerName, dnsProvider).nullish(),
      certificates: z.record(certName, namedCertificate).nullish(),
      imported_certificates: z.record(certName, imported).nullish(),
      deploy_targets: z.record(targetName, deployTarget).nullish(),
      api_keys: z.record(keyName, apiKey).nullish(),
      acme_clients: z.record(clientName, acmeClient).nullish(),
    })
    .meta({ title: 'Desired state of a certificate vault' });
  return z.toJSONSchema(written, { io: 'input', unrepresentable: 'any' });
}

/** What is wrong with a part of the document, by the keys that lead to it. */
export type StateIssue = {
  readonly path: readonly (string | number)[];
  /** A sentence, or with `isPredicate` the second half of one whose subject is the path: `must be a number`. */
  readonly message: string;
  readonly isPredicate?: boolean;
};

/** The document, checked. */
export function readDesiredState(
  value: unknown,
): { readonly state: DesiredState } | { readonly issues: readonly StateIssue[] } {
  const result = desiredState.safeParse(value);
  return result.success ? { state: result.data } : { issues: result.error.issues.flatMap(issuesOf) };
}

function issuesOf(issue: z.core.$ZodIssue): StateIssue[] {
  const path = issue.path.map((key) => (typeof key === 'number' ? key : String(key)));
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, shownKey(key)], message: 'unknown setting' }));
  }
  if (issue.code === 'invalid_key') {
    return issue.issues.map((one) => ({ path, ...describe(one) }));
  }
  return [{ path, ...describe(issue) }];
}

function describe(issue: z.core.$ZodIssue): Pick<StateIssue, 'message' | 'isPredicate'> {
  return { message: describeIssue(issue), isPredicate: isDefaultIssue(issue) };
}

/** A value that was written where a name belongs, such as a token, must not be said back. */
function shownKey(key: string): string {
  return /^[A-Za-z][\w.-]{0,30}$/.test(key) ? key : '(not a name)';
}
