/** Target `azure-key-vault`: a certificate of Azure Key Vault, for application gateways, web apps and others. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import { type Installed, type Material, named, type TargetContext, type TargetType } from './target.ts';
import { apiUrl, credential, namePattern, read, send } from './target-http.ts';

const config = z.strictObject({
  url: apiUrl,
  tenant_id: credential('the directory (tenant) id'),
  client_id: credential('the application (client) id'),
  client_secret: credential('a client secret of the application (its value, not its id)'),
  name: namePattern('the name of a certificate').default('{certificate}'),
  login_url: apiUrl.optional(),
  ca: trustedCa,
});

/** `url`: `https://NAME.vault.azure.net`; `login_url` and `ca` are for other clouds, and servers with this API. */
export type AzureKeyVaultTargetConfig = z.output<typeof config>;

const apiVersion = '7.4';
const tokenSchema = z.object({ access_token: z.string() });
const certificateSchema = z.object({ cer: z.string() });
const errorSchema = z.object({
  error: z.object({ code: z.string().optional(), message: z.string().optional() }),
});
const loginErrorSchema = z.object({ error: z.string(), error_description: z.string().optional() });

export const azureKeyVaultTarget: TargetType<AzureKeyVaultTargetConfig> = {
  type: 'azure-key-vault',
  title: 'Azure Key Vault',
  config,
  host: ({ url }) => new URL(url).host,
  destination: (settings, certificate) => nameOf(settings, certificate),
  patience: () => 90 * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => importTo(settings, context, material, signal),
    isInstalled: (material, _remoteId, signal) => isImported(settings, context, material, signal),
  }),
};

async function importTo(
  settings: AzureKeyVaultTargetConfig,
  context: TargetContext,
  { name: certificate, fullchain, privateKey }: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const token = await tokenFor(settings, context, signal);
  const name = nameOf(settings, certificate);
  const key = privateKey.expose();
  const body = JSON.stringify({
    value: key + fullchain,
    policy: { secret_props: { contentType: 'application/x-pem-file' } },
  });
  const purpose = `import the certificate ${name}`;
  const response = await send(
    context,
    {
      method: 'POST',
      url: `${settings.url}/certificates/${name}/import?api-version=${apiVersion}`,
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...{ body, ca: settings.ca, describeError, purpose },
      secrets: [settings.client_secret, token, key],
    },
    signal,
  );
  read(certificateSchema, response, purpose);
  return {};
}

async function isImported(
  settings: AzureKeyVaultTargetConfig,
  context: TargetContext,
  { name: certificate, fingerprint }: Pick<Material, 'name' | 'fingerprint'>,
  signal: AbortSignal,
): Promise<boolean> {
  const token = await tokenFor(settings, context, signal);
  const name = nameOf(settings, certificate);
  const purpose = `read the certificate ${name}`;
  const response = await send(
    context,
    {
      method: 'GET',
      url: `${settings.url}/certificates/${name}?api-version=${apiVersion}`,
      headers: { Authorization: `Bearer ${token}` },
      ...{ ca: settings.ca, describeError, purpose, accept: [404] },
      secrets: [settings.client_secret, token],
    },
    signal,
  );
  if (response.status === 404) return false;
  const der = Buffer.from(read(certificateSchema, response, purpose).cer, 'base64');
  return createHash('sha256').update(der).digest('hex') === fingerprint;
}

async function tokenFor(
  { url, tenant_id, client_id, client_secret, login_url, ca }: AzureKeyVaultTargetConfig,
  context: TargetContext,
  signal: AbortSignal,
): Promise<string> {
  const purpose = 'get an access token';
  const credentials = { grant_type: 'client_credentials', client_id, client_secret, scope: scopeOf(url) };
  const response = await send(
    context,
    {
      method: 'POST',
      url: `${login_url ?? 'https://login.microsoftonline.com'}/${encodeURIComponent(tenant_id)}/oauth2/v2.0/token`,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(credentials).toString(),
      ...{ ca, purpose, secrets: [client_secret], describeError: describeLoginError },
    },
    signal,
  );
  return read(tokenSchema, response, purpose).access_token;
}

/** Each cloud has a scope of its own: the domain of its vaults. */
function scopeOf(url: string): string {
  const domain = /^[^.]+\.(vault\..+)$/.exec(new URL(url).hostname)?.[1] ?? 'vault.azure.net';
  return `https://${domain}/.default`;
}

/** Key Vault takes letters, digits and dashes only. */
function nameOf({ name }: AzureKeyVaultTargetConfig, certificate: string): string {
  return named(name, certificate)
    .replace(/[^A-Za-z0-9-]/g, '-')
    .slice(0, 127);
}

function describeError(body: unknown): string | undefined {
  const { code, message } = errorSchema.safeParse(body).data?.error ?? {};
  return [code, message].filter(Boolean).join(': ');
}

function describeLoginError(body: unknown): string | undefined {
  const { error, error_description } = loginErrorSchema.safeParse(body).data ?? {};
  return [error, error_description].filter(Boolean).join(': ');
}
