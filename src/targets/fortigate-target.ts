/** Target `fortigate`: a local certificate of FortiOS, and the services that present it. */
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import {
  type Installed,
  type Material,
  named,
  type TargetContext,
  TargetError,
  type TargetType,
} from './target.ts';
import { apiUrl, credential, namePattern, read, send, type TargetResponse } from './target-http.ts';

const config = z.strictObject({
  url: apiUrl,
  token: credential('the token of a REST API administrator'),
  vdom: namePattern('the name of a virtual domain').optional(),
  name: namePattern('the name of a certificate').default('{certificate}'),
  use_for: z.array(z.enum(['admin', 'ssl-vpn'], { error: 'must be admin or ssl-vpn' })).default([]),
  ca: trustedCa,
});

/**
 * `ca` replaces the public CAs: those of the certificate that the device has now, and of the new one; `use_for`: the
 * services that present the certificate; without `vdom` it is a certificate of the whole device.
 */
export type FortigateTargetConfig = z.output<typeof config>;

/** FortiOS cannot replace a certificate that is in use, so each version has a name of its own. */
const longestName = 35;

const uses = {
  admin: { path: 'system/global', setting: 'admin-server-cert' },
  'ssl-vpn': { path: 'vpn.ssl/settings', setting: 'servercert' },
} as const;

/** "A duplicate entry already exists." */
const duplicate = -5;
/** "The entry is used by others", so that it can neither be deleted nor imported again. */
const inUse = -23;
const errorSchema = z.object({ error: z.number().optional() });
const importSchema = z.object({ status: z.literal('success') });
const certificateSchema = z.object({
  results: z.array(z.object({ certificate: z.string().optional() })).min(1),
});
const settingSchema = z.object({ results: z.record(z.string(), z.unknown()) });

export const fortigateTarget: TargetType<FortigateTargetConfig> = {
  type: 'fortigate',
  title: 'a FortiGate firewall',
  config,
  host: ({ url }) => new URL(url).host,
  destination: ({ name, use_for }, certificate) => [named(name, certificate), ...use_for].join(', '),
  patience: () => 60 * second,
  create: (settings, context) => ({
    install: (material, remoteId, signal) => install(settings, context, material, remoteId, signal),
    isInstalled: (material, _remoteId, signal) => isInUse(settings, context, material, signal),
  }),
};

async function install(
  settings: FortigateTargetConfig,
  context: TargetContext,
  material: Material,
  remoteId: string | null,
  signal: AbortSignal,
): Promise<Installed> {
  const name = nameOf(settings, material);
  const key = material.privateKey.expose();
  const purpose = `import the certificate ${name}`;
  const imported = await call(
    settings,
    context,
    {
      method: 'POST',
      path: 'monitor/vpn-certificate/local/import',
      purpose,
      json: {
        ...{ type: 'regular', certname: name, scope: settings.vdom === undefined ? 'global' : 'vdom' },
        file_content: Buffer.from(material.fullchain).toString('base64'),
        key_file_content: Buffer.from(key).toString('base64'),
      },
      secrets: [key],
      accept: [500],
    },
    signal,
  );
  if (imported.status !== 500) read(importSchema, imported, purpose);
  else if (![duplicate, inUse].includes(codeOf(imported) ?? 0)) throw refused(purpose, imported);
  else if (!(await isHeld(settings, context, material, signal))) {
    throw new TargetError(
      `failed to ${purpose}: another certificate has this name; delete it or change the setting name`,
    );
  }
  for (const use of settings.use_for) {
    const { path, setting } = uses[use];
    const presenting = `present the certificate for ${use}`;
    const json = { [setting]: name };
    await call(settings, context, { method: 'PUT', path: `cmdb/${path}`, purpose: presenting, json }, signal);
  }
  if (remoteId !== null && remoteId !== name) await removeOld(settings, context, remoteId, signal);
  return { remoteId: name };
}

/** A policy or a virtual server may still present the old certificate: then it stays. */
async function removeOld(
  settings: FortigateTargetConfig,
  context: TargetContext,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const path = `cmdb/vpn.certificate/local/${encodeURIComponent(name)}`;
  const purpose = `delete the old certificate ${name}`;
  const accept = [404, 500];
  const response = await call(settings, context, { method: 'DELETE', path, purpose, accept }, signal);
  if (response.status === 500 && codeOf(response) !== inUse) throw refused(purpose, response);
}

async function isInUse(
  settings: FortigateTargetConfig,
  context: TargetContext,
  material: Pick<Material, 'name' | 'version' | 'fingerprint'>,
  signal: AbortSignal,
): Promise<boolean> {
  const name = nameOf(settings, material);
  if (!(await isHeld(settings, context, material, signal))) return false;
  for (const use of settings.use_for) {
    const { path, setting } = uses[use];
    const purpose = `read which certificate is presented for ${use}`;
    const response = await call(settings, context, { method: 'GET', path: `cmdb/${path}`, purpose }, signal);
    if (read(settingSchema, response, purpose).results[setting] !== name) return false;
  }
  return true;
}

/** Whether the certificate of this name is that of the material. Versions that do not show it are believed. */
async function isHeld(
  settings: FortigateTargetConfig,
  context: TargetContext,
  material: Pick<Material, 'name' | 'version' | 'fingerprint'>,
  signal: AbortSignal,
): Promise<boolean> {
  const name = nameOf(settings, material);
  const purpose = `read the certificate ${name}`;
  // Without the private key, which FortiOS otherwise shows in encrypted form.
  const path = `cmdb/vpn.certificate/local/${encodeURIComponent(name)}?format=name|certificate`;
  const found = await call(settings, context, { method: 'GET', path, purpose, accept: [404] }, signal);
  if (found.status === 404) return false;
  const [{ certificate = '' } = {}] = read(certificateSchema, found, purpose).results;
  const pem = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(certificate)?.[0];
  return pem === undefined || fingerprintOf(pem) === material.fingerprint;
}

/** SHA-256 in lower case; undefined if the text is not a certificate. */
function fingerprintOf(pem: string): string | undefined {
  try {
    return new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase();
  } catch {
    // The reasons of OpenSSL add no useful information.
    return undefined;
  }
}

/** `web-v7`; a long name is cut in front of the version. */
function nameOf({ name }: FortigateTargetConfig, material: Pick<Material, 'name' | 'version'>): string {
  const suffix = `-v${material.version}`;
  return named(name, material.name).slice(0, longestName - suffix.length) + suffix;
}

type Call = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** After `/api/v2/`. */
  readonly path: string;
  readonly purpose: string;
  readonly json?: unknown;
  readonly secrets?: readonly string[];
  readonly accept?: readonly number[];
};

async function call(
  { url, token, vdom, ca }: FortigateTargetConfig,
  context: TargetContext,
  { method, path, purpose, json, secrets = [], accept = [] }: Call,
  signal: AbortSignal,
): Promise<TargetResponse> {
  const place = new URL(`${url}/api/v2/${path}`);
  if (vdom !== undefined) place.searchParams.set('vdom', vdom);
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(json !== undefined && { 'Content-Type': 'application/json' }),
  };
  const body = json === undefined ? {} : { body: JSON.stringify(json) };
  const request = { method, url: place.href, headers, ...body, ca, purpose, accept, describeError };
  return send(context, { ...request, secrets: [token, ...secrets] }, signal);
}

function codeOf({ json }: TargetResponse): number | undefined {
  return errorSchema.safeParse(json).data?.error;
}

function refused(purpose: string, response: TargetResponse): TargetError {
  return new TargetError(`failed to ${purpose}: ${describeError(response.json) ?? response.status}`);
}

function describeError(body: unknown): string | undefined {
  const code = errorSchema.safeParse(body).data?.error;
  return code === undefined ? undefined : `error ${code}`;
}
