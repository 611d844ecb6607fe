/** A fake of the Kubernetes API, limited to secrets: server-side apply, updates by others, and managers of fields. */
import assert from 'node:assert/strict';
import { type KubernetesTargetConfig, kubernetesTarget } from '../../src/targets/kubernetes-target.ts';
import type { FakeReply, FakeRequest } from '../harness/http/fake-server.ts';
import {
  type FakeProduct,
  type FakeTarget,
  fromBase64,
  type Held,
  heldFrom,
} from '../harness/targets/fake-target.ts';

const token = 'eyJhbGciOiJSUzI1NiJ9.k8s-token.4711';
const wrong = 'eyJhbGciOiJSUzI1NiJ9.k8s-wrong.0815';

/** A field by its path, as a key of a map: `["data","tls.crt"]`. */
type Path = string;
type Manager = {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly fields: Set<Path>;
};
type Secret = { readonly values: Map<Path, string>; managers: Manager[] };

export type FakeKubernetes = FakeProduct & {
  /** Another client changes or deletes (undefined) fields of the secret, as `kubectl edit` and `label` do. */
  readonly edit: (
    manager: string,
    fields: readonly (readonly [path: string[], value: string | undefined])[],
  ) => void;
  /** A field of the secret. */
  readonly field: (...path: string[]) => string | undefined;
};

/** A Status, as the API sends it with every error. */
export const kubernetesError = (status: number, message: string): FakeReply => ({
  status,
  json: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, code: status },
});

export const fakeKubernetes: FakeTarget<KubernetesTargetConfig, FakeKubernetes> = {
  type: kubernetesTarget,
  settings: (url) => ({ server: url, token }),
  wrong: { token: wrong },
  denial:
    /(apply|read the metadata of) the secret default\/web: 127\.0\.0\.1:\d+ responded with 401 Unauthorized$/,
  wrongSecret: wrong,
  secrets: [token],
  isInstallation: ({ method }) => method === 'PATCH',
  error: kubernetesError,
  hasWords: true,
  create: () => {
    const secrets = new Map<string, Secret>();
    const only = () => [...secrets.values()][0] ?? { values: new Map(), managers: [] };
    const edit: FakeKubernetes['edit'] = (manager, fields) => {
      for (const [path, value] of fields) update(only(), manager, JSON.stringify(path), value);
    };
    return {
      edit,
      field: (...path) => only().values.get(JSON.stringify(path)),
      held: () => [...secrets.values()].flatMap((secret) => heldIn(secret) ?? []),
      replace: ({ certificate, chain, privateKey }) =>
        edit('kubectl-edit', [
          [['data', 'tls.crt'], Buffer.from(certificate + chain).toString('base64')],
          [['data', 'tls.key'], Buffer.from(privateKey).toString('base64')],
        ]),
      clear: () => secrets.clear(),
      handler: (request) => {
        if (request.headers.authorization !== `Bearer ${token}`) return kubernetesError(401, 'Unauthorized');
        const [, namespace, name = ''] =
          /^\/api\/v1\/namespaces\/([^/]+)\/secrets\/([^/]+)$/.exec(request.path) ?? [];
        if (namespace === undefined)
          return kubernetesError(404, 'the server could not find the requested resource');
        const key = `${namespace}/${name}`;
        const secret = secrets.get(key);
        if (request.method === 'PATCH') return patched(secrets, key, request);
        return secret === undefined
          ? kubernetesError(404, `secrets "${name}" not found`)
          : shown(key, secret, request);
      },
    };
  },
};

function patched(secrets: Map<string, Secret>, key: string, request: FakeRequest): FakeReply {
  const { headers, query, body } = request;
  if (headers['content-type'] !== 'application/apply-patch+yaml') {
    return kubernetesError(415, 'the body of the request was in an unknown format');
  }
  const manager = query.get('fieldManager') ?? '';
  if (manager === '') return kubernetesError(422, 'PatchOptions is invalid: fieldManager: Required value');
  const { apiVersion, kind, metadata, ...rest } = JSON.parse(body);
  assert.deepEqual([apiVersion, kind, `${metadata.namespace}/${metadata.name}`], ['v1', 'Secret', key]);
  const { name: _, namespace: __, ...own } = metadata;
  const wanted = new Map(leaves({ metadata: own, ...rest }));
  const secret = secrets.get(key) ?? { values: new Map(), managers: [] };
  const type = secret.values.get('["type"]') ?? rest.type;
  if (type !== rest.type) return kubernetesError(422, `Secret "${key}" is invalid: type: field is immutable`);
  if (type === 'kubernetes.io/tls' && !['tls.crt', 'tls.key'].every((one) => one in rest.data)) {
    return kubernetesError(422, `Secret "${key}" is invalid: data[tls.crt]: Required value`);
  }
  if (!apply(secret, { manager, isForced: query.get('force') === 'true' }, wanted)) {
    return kubernetesError(409, 'Apply failed with 1 conflict: use force');
  }
  assert(heldIn(secret), 'the certificate, its chain and its key belong together');
  secrets.set(key, secret);
  return shown(key, secret, request);
}

/** Server-side apply: false for a conflict, which `force` resolves by taking the field from its manager. */
function apply(
  secret: Secret,
  { manager, isForced }: { readonly manager: string; readonly isForced: boolean },
  wanted: ReadonlyMap<Path, string>,
): boolean {
  const isOwn = (one: Manager) => one.manager === manager && one.operation === 'Apply';
  const others = secret.managers.filter((one) => !isOwn(one));
  const changed = [...wanted]
    .filter(([path, value]) => secret.values.get(path) !== value)
    .map(([path]) => path);
  if (!isForced && changed.some((path) => others.some(({ fields }) => fields.has(path)))) return false;
  const before = secret.managers.find(isOwn)?.fields ?? new Set();
  for (const path of before) {
    if (!wanted.has(path) && !others.some(({ fields }) => fields.has(path))) secret.values.delete(path);
  }
  for (const path of changed) for (const { fields } of others) fields.delete(path);
  for (const [path, value] of wanted) secret.values.set(path, value);
  secret.managers = [...others, { manager, operation: 'Apply', fields: new Set(wanted.keys()) }];
  return true;
}

/** An update: each changed field goes over to its manager. */
function update(secret: Secret, manager: string, path: Path, value: string | undefined): void {
  if (secret.values.get(path) === value) return;
  for (const { fields } of secret.managers) fields.delete(path);
  if (value === undefined) {
    secret.values.delete(path);
    return;
  }
  secret.values.set(path, value);
  const own = secret.managers.find((one) => one.manager === manager && one.operation === 'Update');
  if (own !== undefined) own.fields.add(path);
  else secret.managers.push({ manager, operation: 'Update', fields: new Set([path]) });
}

/** The metadata if only that was asked for, and otherwise all of the secret. */
function shown(key: string, { values, managers }: Secret, { headers }: FakeRequest): FakeReply {
  const [namespace, name] = key.split('/');
  const managedFields = managers
    .filter(({ fields }) => fields.size > 0)
    .map(({ manager, operation, fields }) => ({
      ...{ manager, operation, apiVersion: 'v1', time: '2026-11-21T12:00:00Z', fieldsType: 'FieldsV1' },
      fieldsV1: nested(
        [...fields].map((path) => [path, undefined]),
        (part) => `f:${part}`,
      ),
    }));
  const { metadata = {}, ...rest } = nested([...values], (part) => part) as Record<string, object>;
  const all = { name, namespace, uid: '1', resourceVersion: '7', ...metadata, managedFields };
  const isPartial = /^application\/json;as=PartialObjectMetadata;g=meta\.k8s\.io;v=v1$/.test(
    headers.accept ?? '',
  );
  return {
    status: 200,
    json: isPartial
      ? { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: all }
      : { kind: 'Secret', apiVersion: 'v1', metadata: all, ...rest },
  };
}

function heldIn({ values }: Secret): Held | undefined {
  const [certificates, key] = ['tls.crt', 'tls.key'].map((one) => values.get(JSON.stringify(['data', one])));
  return heldFrom(fromBase64(certificates), fromBase64(key));
}

/** The strings in an object with their paths. */
function leaves(value: unknown, path: readonly string[] = []): [Path, string][] {
  if (typeof value === 'string') return [[JSON.stringify(path), value]];
  return Object.entries(value as object).flatMap(([name, inner]) => leaves(inner, [...path, name]));
}

/** The object with these values at their paths; an empty object in place of undefined. */
function nested(
  entries: readonly (readonly [Path, string | undefined])[],
  nameOf: (part: string) => string,
): object {
  const root: Record<string, unknown> = {};
  for (const [path, value] of entries) {
    const parts = (JSON.parse(path) as string[]).map(nameOf);
    const last = parts.pop() ?? '';
    let place = root;
    for (const part of parts) {
      place[part] ??= {};
      place = place[part] as Record<string, unknown>;
    }
    place[last] = value ?? {};
  }
  return root;
}
