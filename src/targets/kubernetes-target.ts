/** Target `kubernetes`: a TLS secret, by server-side apply, so that labels and annotations of others stay. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { describeSystemError } from '../base/system-error.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import {
  type Installed,
  type Material,
  named,
  type TargetContext,
  TargetError,
  type TargetType,
} from './target.ts';
import { apiUrl, credential, namePattern, read, send } from './target-http.ts';

/** What a vault outside the cluster needs. */
const needed = {
  server: 'the URL of the Kubernetes API, or in_cluster true',
  token: 'a token of a service account',
};
const outside = Object.keys(needed) as (keyof typeof needed)[];

const config = z
  .strictObject({
    server: apiUrl.optional(),
    token: credential('a token of a service account').optional(),
    ca: trustedCa,
    in_cluster: z.boolean().default(false),
    namespace: namePattern('a namespace').default('default'),
    secret: namePattern('the name of a secret').default('{certificate}'),
  })
  .refine(({ in_cluster, server, token, ca }) => !in_cluster || !(server ?? token ?? ca), {
    path: ['in_cluster'],
    message: 'takes server, token and ca from the service account of the pod; leave them out',
  })
  .superRefine((settings, context) => {
    for (const field of settings.in_cluster ? [] : outside) {
      if (settings[field] !== undefined) continue;
      context.addIssue({ code: 'custom', path: [field], message: `is missing; it must be ${needed[field]}` });
    }
  });

/** `ca` replaces the public CAs; `secret` and `namespace` may contain `{certificate}`. */
export type KubernetesTargetConfig = z.output<typeof config>;

type Access = { readonly server: string; readonly token: string; readonly ca: string | undefined };

/** Where a pod finds its service account. */
const account = '/var/run/secrets/kubernetes.io/serviceaccount';
const manager = 'certificate-vault';
const fingerprintKey = 'certificate-vault/fingerprint-sha256';

/** Only metadata: the secret itself contains the private key. */
const onlyMetadata = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
const metadataSchema = z.object({
  metadata: z.object({
    annotations: z.record(z.string(), z.string()).default({}),
    managedFields: z
      .array(
        z.object({ manager: z.string().optional(), operation: z.string().optional(), fieldsV1: z.unknown() }),
      )
      .default([]),
  }),
});
const ownedFields = z.object({
  'f:data': z.object({ 'f:tls.crt': z.object({}), 'f:tls.key': z.object({}) }),
});
const statusSchema = z.object({ message: z.string() });

export const kubernetesTarget: TargetType<KubernetesTargetConfig> = {
  type: 'kubernetes',
  title: 'a TLS secret of Kubernetes',
  config,
  host: ({ server }) => new URL(server ?? inCluster).host,
  destination: ({ namespace, secret }, name) => `${named(namespace, name)}/${named(secret, name)}`,
  patience: () => 60 * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => apply(settings, context, material, signal),
    isInstalled: (material, _remoteId, signal) => isApplied(settings, context, material, signal),
  }),
};

const inCluster = 'https://kubernetes.default.svc';

async function apply(
  settings: KubernetesTargetConfig,
  context: TargetContext,
  material: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const { server, token, ca } = await accessOf(settings);
  const name = named(settings.secret, material.name);
  const namespace = named(settings.namespace, material.name);
  const privateKey = material.privateKey.expose();
  // JSON is YAML.
  const body = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      ...{ name, namespace },
      labels: { 'app.kubernetes.io/managed-by': manager },
      annotations: {
        'certificate-vault/certificate': material.name,
        'certificate-vault/version': String(material.version),
        [fingerprintKey]: material.fingerprint,
      },
    },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': base64(material.fullchain), 'tls.key': base64(privateKey) },
  });
  const purpose = `apply the secret ${namespace}/${name}`;
  const response = await send(
    context,
    {
      method: 'PATCH',
      url: `${secretUrl(server, namespace, name)}?fieldManager=${manager}&force=true`,
      headers: {
        ...authorization(token),
        'Content-Type': 'application/apply-patch+yaml',
        Accept: onlyMetadata,
      },
      ...{ body, ca, describeError, purpose, secrets: [token, privateKey] },
    },
    signal,
  );
  read(metadataSchema, response, purpose);
  return {};
}

/** Whether the secret has the annotation of this version, and no other client wrote its data since. */
async function isApplied(
  settings: KubernetesTargetConfig,
  context: TargetContext,
  { name: certificate, fingerprint }: Pick<Material, 'name' | 'fingerprint'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { server, token, ca } = await accessOf(settings);
  const name = named(settings.secret, certificate);
  const namespace = named(settings.namespace, certificate);
  const purpose = `read the metadata of the secret ${namespace}/${name}`;
  const response = await send(
    context,
    {
      method: 'GET',
      url: secretUrl(server, namespace, name),
      headers: { ...authorization(token), Accept: onlyMetadata },
      ...{ ca, purpose, describeError, accept: [404], secrets: [token] },
    },
    signal,
  );
  if (response.status === 404) return false;
  const { annotations, managedFields } = read(metadataSchema, response, purpose).metadata;
  return (
    annotations[fingerprintKey] === fingerprint &&
    managedFields.some(
      (entry) =>
        entry.manager === manager &&
        entry.operation === 'Apply' &&
        ownedFields.safeParse(entry.fieldsV1).success,
    )
  );
}

async function accessOf({ in_cluster, server, token, ca }: KubernetesTargetConfig): Promise<Access> {
  if (!in_cluster) return { server: server ?? '', token: token ?? '', ca };
  try {
    // Read each time: Kubernetes replaces the token every hour.
    const [bearer, root] = await Promise.all(
      ['token', 'ca.crt'].map((file) => readFile(`${account}/${file}`, 'utf8')),
    );
    return { server: inCluster, token: (bearer ?? '').trim(), ca: root };
  } catch (error) {
    throw new TargetError(
      `failed to read the service account in ${account}: ${describeSystemError(error as NodeJS.ErrnoException)}`,
      { cause: error },
    );
  }
}

function secretUrl(server: string, namespace: string, name: string): string {
  return `${server}/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
}

function authorization(token: string): { readonly Authorization: string } {
  return { Authorization: `Bearer ${token}` };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function describeError(body: unknown): string | undefined {
  return statusSchema.safeParse(body).data?.message;
}
