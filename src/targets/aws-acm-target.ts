/** Target `aws-acm`: an imported certificate of AWS Certificate Manager, for load balancers, CloudFront and others. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { readPemBlocks } from '../crypto/pem.ts';
import { sigV4Headers } from '../net/aws-signature.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import type { Installed, Material, TargetContext, TargetType } from './target.ts';
import { apiUrl, credential, read, send, type TargetRequest, type TargetResponse } from './target-http.ts';

const config = z.strictObject({
  access_key_id: credential('an AWS access key id'),
  secret_access_key: credential('the secret access key that belongs to access_key_id'),
  session_token: credential('the session token of temporary credentials').optional(),
  region: z
    .string({ error: 'is missing; it must be a region, such as eu-central-1' })
    .regex(/^[a-z]{2}(?:-[a-z]+)+-\d$/, { error: 'must be a region, such as eu-central-1' }),
  certificate_arn: z
    .string()
    .regex(/^arn:[a-z-]+:acm:[a-z0-9-]+:\d{12}:certificate\/[A-Za-z0-9-]{1,64}$/, {
      error: 'must be the ARN of an imported certificate',
    })
    .optional(),
  base_url: apiUrl.optional(),
  ca: trustedCa,
});

/**
 * `certificate_arn`: the certificate to replace, for a target with one certificate; without it, the first installation
 * imports a new one. `base_url` and `ca` are for other servers with this API.
 */
export type AwsAcmTargetConfig = z.output<typeof config>;

const importSchema = z.object({ CertificateArn: z.string() });
const certificateSchema = z.object({ Certificate: z.string() });
const errorSchema = z.object({
  __type: z.string().optional(),
  message: z.string().optional(),
  // Missing permissions are spelled like this.
  Message: z.string().optional(),
});

export const awsAcmTarget: TargetType<AwsAcmTargetConfig> = {
  type: 'aws-acm',
  title: 'AWS Certificate Manager',
  config,
  host: (settings) => new URL(urlOf(settings)).host,
  destination: ({ region, certificate_arn }) => certificate_arn ?? `imported certificate in ${region}`,
  patience: () => 60 * second,
  create: (settings, context) => ({
    install: (material, remoteId, signal) => importOver(settings, context, material, remoteId, signal),
    isInstalled: (material, remoteId, signal) => isImported(settings, context, material, remoteId, signal),
  }),
};

async function importOver(
  settings: AwsAcmTargetConfig,
  context: TargetContext,
  { name, certificate, chain, privateKey }: Material,
  remoteId: string | null,
  signal: AbortSignal,
): Promise<Installed> {
  const arn = settings.certificate_arn ?? remoteId;
  const key = privateKey.expose();
  const purpose = 'import the certificate';
  const material = {
    ...{ Certificate: base64(certificate), PrivateKey: base64(key) },
    ...(chain !== '' && { CertificateChain: base64(chain) }),
  };
  const importing = (json: object, acceptError?: Call['acceptError']) =>
    call(settings, context, { action: 'ImportCertificate', purpose, json, key, acceptError }, signal);
  if (arn !== null) {
    // An import that was deleted is imported again; a configured ARN must exist.
    const acceptError = settings.certificate_arn === undefined ? isNotFound : undefined;
    const response = await importing({ ...material, CertificateArn: arn }, acceptError);
    if (!isNotFound(response.json)) return { remoteId: read(importSchema, response, purpose).CertificateArn };
  }
  // Tags can only be set with a new certificate.
  const response = await importing({ ...material, Tags: [{ Key: 'certificate-vault', Value: name }] });
  return { remoteId: read(importSchema, response, purpose).CertificateArn };
}

async function isImported(
  settings: AwsAcmTargetConfig,
  context: TargetContext,
  { fingerprint }: Pick<Material, 'fingerprint'>,
  remoteId: string | null,
  signal: AbortSignal,
): Promise<boolean> {
  const arn = settings.certificate_arn ?? remoteId;
  if (arn === null) return false;
  const purpose = 'read the certificate';
  const json = { CertificateArn: arn };
  const get = { action: 'GetCertificate', purpose, json, acceptError: isNotFound } as const;
  const response = await call(settings, context, get, signal);
  if (isNotFound(response.json)) return false;
  const [found] = readPemBlocks(read(certificateSchema, response, purpose).Certificate);
  return found !== undefined && createHash('sha256').update(found.der).digest('hex') === fingerprint;
}

type Call = {
  readonly action: 'ImportCertificate' | 'GetCertificate';
  readonly purpose: string;
  readonly json: unknown;
  /** The private key in the request. */
  readonly key?: string;
  readonly acceptError?: TargetRequest['acceptError'] | undefined;
};

async function call(
  settings: AwsAcmTargetConfig,
  context: TargetContext,
  { action, purpose, json, key, acceptError }: Call,
  signal: AbortSignal,
): Promise<TargetResponse> {
  const { access_key_id, secret_access_key, session_token, region, ca } = settings;
  const request = {
    method: 'POST' as const,
    url: `${urlOf(settings)}/`,
    headers: { 'Content-Type': 'application/x-amz-json-1.1', 'X-Amz-Target': `CertificateManager.${action}` },
    body: JSON.stringify(json),
  };
  const credentials = {
    ...{ accessKeyId: access_key_id, secretAccessKey: secret_access_key, sessionToken: session_token },
  };
  const signed = await sigV4Headers(request, credentials, { region, service: 'acm' }, context.world.now());
  const headers = { ...request.headers, ...signed };
  const secrets = [secret_access_key, session_token, key].filter((one) => one !== undefined);
  const errors = { describeError, ...(acceptError !== undefined && { acceptError }) };
  return send(context, { ...request, headers, ca, purpose, secrets, ...errors }, signal);
}

function urlOf({ base_url, region }: AwsAcmTargetConfig): string {
  return base_url ?? `https://acm.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function isNotFound(body: unknown): boolean {
  return typeOf(body) === 'ResourceNotFoundException';
}

/** The type of an error, without the namespace that some services put in front. */
function typeOf(body: unknown): string | undefined {
  return errorSchema.safeParse(body).data?.__type?.replace(/^.*#/, '');
}

function describeError(body: unknown): string | undefined {
  const { message, Message = message } = errorSchema.safeParse(body).data ?? {};
  return [typeOf(body), Message].filter(Boolean).join(': ');
}
