/** Target `proxmox`: the certificate of the API and web interface of a Proxmox VE node. */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import type { Installed, Material, TargetContext, TargetType } from './target.ts';
import { apiUrl, credential, namePattern, read, send } from './target-http.ts';

const config = z.strictObject({
  url: apiUrl,
  token: credential('an API token, USER@REALM!NAME=SECRET').refine(
    (text) => /^[^@]+@[^!]+![^=]+=.+$/.test(text),
    {
      error: 'must be an API token, USER@REALM!NAME=SECRET',
    },
  ),
  node: namePattern('the name of a node'),
  ca: trustedCa,
});

/** `ca` replaces the public CAs: those of the certificate that the node has now, and of the new one. */
export type ProxmoxTargetConfig = z.output<typeof config>;

/** The file of a certificate that was uploaded. */
const custom = 'pveproxy-ssl.pem';
const fileSchema = z.object({ filename: z.string(), fingerprint: z.string().nullish() });
const uploadSchema = z.object({ data: fileSchema });
const infoSchema = z.object({ data: z.array(fileSchema) });
const errorSchema = z.object({
  message: z.string().optional(),
  errors: z.record(z.string(), z.string()).optional(),
});

export const proxmoxTarget: TargetType<ProxmoxTargetConfig> = {
  type: 'proxmox',
  title: 'a node of Proxmox VE',
  config,
  host: ({ url }) => new URL(url).host,
  destination: ({ node }) => `node ${node}`,
  patience: () => 60 * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => upload(settings, context, material, signal),
    isInstalled: (material, _remoteId, signal) => isUploaded(settings, context, material, signal),
  }),
};

async function upload(
  settings: ProxmoxTargetConfig,
  context: TargetContext,
  { fullchain, privateKey }: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const key = privateKey.expose();
  const form = new URLSearchParams({ certificates: fullchain, key, force: '1', restart: '1' });
  const purpose = `upload the certificate to the node ${settings.node}`;
  const response = await send(
    context,
    {
      method: 'POST',
      url: `${certificatesOf(settings)}/custom`,
      headers: { ...authorization(settings), 'Content-Type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
      ...{ ca: settings.ca, describeError, purpose, secrets: [...secretsOf(settings), key] },
    },
    signal,
  );
  read(uploadSchema, response, purpose);
  return {};
}

async function isUploaded(
  settings: ProxmoxTargetConfig,
  context: TargetContext,
  { fingerprint }: Pick<Material, 'fingerprint'>,
  signal: AbortSignal,
): Promise<boolean> {
  const purpose = `read the certificates of the node ${settings.node}`;
  const response = await send(
    context,
    {
      method: 'GET',
      url: `${certificatesOf(settings)}/info`,
      headers: authorization(settings),
      ...{ ca: settings.ca, describeError, purpose, secrets: secretsOf(settings) },
    },
    signal,
  );
  return read(infoSchema, response, purpose).data.some(
    (one) => one.filename === custom && one.fingerprint?.replaceAll(':', '').toLowerCase() === fingerprint,
  );
}

function certificatesOf({ url, node }: ProxmoxTargetConfig): string {
  return `${url}/api2/json/nodes/${node}/certificates`;
}

/** The token, and the part of it that is secret. */
function secretsOf({ token }: ProxmoxTargetConfig): string[] {
  return [token, token.slice(token.indexOf('=') + 1)];
}

function authorization({ token }: ProxmoxTargetConfig): { readonly Authorization: string } {
  return { Authorization: `PVEAPIToken=${token}` };
}

/** Nodes say behind the status why they reject a token; there is no body then. */
function describeError(body: unknown, statusText: string): string | undefined {
  const { message = statusText, errors = {} } = errorSchema.safeParse(body).data ?? {};
  const details = Object.entries(errors).map(([field, problem]) => `${field}: ${problem}`);
  return [message.trim(), ...details].filter(Boolean).join('; ');
}
