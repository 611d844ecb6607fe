/** The target `kubernetes` against a fake of the API that tracks the managers of all fields. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { kubernetesTarget } from '../../src/targets/kubernetes-target.ts';
import { loopbackGuard } from '../harness/loopback-guard.ts';
import { heldOf, startTarget } from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';
import { TestWorld } from '../harness/test-world.ts';
import { fakeKubernetes, kubernetesError } from './fake-kubernetes.ts';

targetScenarios(fakeKubernetes);

const { signal } = new AbortController();

test('kubernetes: the secret has its type, and the certificate and version in labels and annotations', async (t) => {
  const { product, install } = await startTarget(t, fakeKubernetes);
  const { first } = await materials();
  await install(first);
  assert.equal(product.field('type'), 'kubernetes.io/tls');
  assert.equal(product.field('metadata', 'labels', 'app.kubernetes.io/managed-by'), 'certificate-vault');
  const annotation = (name: string) => product.field('metadata', 'annotations', `certificate-vault/${name}`);
  const annotations = ['certificate', 'version', 'fingerprint-sha256'].map(annotation);
  assert.deepEqual(annotations, ['web', '1', first.fingerprint]);
});

test('kubernetes: labels, annotations and data of others stay', async (t) => {
  const { product, install, isInstalled } = await startTarget(t, fakeKubernetes);
  const { first, second } = await materials();
  const others = [
    ['metadata', 'labels', 'team'],
    ['metadata', 'annotations', 'reloader.example/match'],
    ['data', 'ca.crt'],
  ];
  await install(first);
  product.edit(
    'kubectl-edit',
    others.map((path) => [path, 'YQ==']),
  );
  assert.equal(await isInstalled(first), true);
  await install(second);
  assert.deepEqual(
    others.map((path) => product.field(...path)),
    ['YQ==', 'YQ==', 'YQ=='],
  );
  assert.equal(await isInstalled(second), true);
});

for (const name of ['tls.crt', 'tls.key']) {
  test(`kubernetes: an edit of ${name} alone is detected and undone`, async (t) => {
    const { product, install, isInstalled } = await startTarget(t, fakeKubernetes);
    const { first } = await materials();
    await install(first);
    product.edit('kubectl-edit', [[['data', name], 'YQ==']]);
    assert.equal(await isInstalled(first), false);
    await install(first);
    assert.equal(await isInstalled(first), true);
    assert.deepEqual(product.held(), [heldOf(first)]);
  });
}

test('kubernetes: an annotation without data that the vault applied does not count as installed', async (t) => {
  const { product, install, isInstalled } = await startTarget(t, fakeKubernetes);
  const { first, second } = await materials();
  await install(first);
  // A client that copies the annotations of one secret to another.
  product.edit('copy', [
    [['metadata', 'annotations', 'certificate-vault/fingerprint-sha256'], second.fingerprint],
  ]);
  product.replace?.(heldOf(first));
  assert.equal(await isInstalled(first), false);
});

test('kubernetes: namespace and secret may contain the name of the certificate', async (t) => {
  const { fake, made } = await startTarget(t, fakeKubernetes);
  const settings = { namespace: 'tls-{certificate}', secret: '{certificate}.cert' };
  await made(settings).install((await materials()).first, null, signal);
  assert.equal(fake.requests[0]?.path, '/api/v1/namespaces/tls-web/secrets/web.cert');
  const config = kubernetesTarget.config.parse({ ...fakeKubernetes.settings(fake.url), ...settings });
  assert.equal(kubernetesTarget.destination(config, 'web'), 'tls-web/web.cert');
});

test('kubernetes: a missing permission is reported in the words of the API', async (t) => {
  const { fake, install } = await startTarget(t, fakeKubernetes);
  const words =
    'secrets "web" is forbidden: User "system:serviceaccount:default:vault" cannot patch resource "secrets" in API group "" in the namespace "default"';
  fake.interrupt(kubernetesError(403, words));
  const { message } = await refusal(install((await materials()).first));
  assert.equal(
    message,
    `failed to apply the secret default/web: ${new URL(fake.url).host} responded with 403 ${words}`,
  );
});

const account = '/var/run/secrets/kubernetes.io/serviceaccount';

test('kubernetes: in_cluster reads the token and the CA of the service account for each request', async (t) => {
  const { fake, product } = await startTarget(t, fakeKubernetes, {
    origin: 'https://kubernetes.default.svc',
  });
  const cas: unknown[] = [];
  const files = new Map([[`${account}/ca.crt`, 'PEM of the cluster']]);
  t.mock.method(promises, 'readFile', async (path: string) => files.get(path));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const outbound: typeof fake.outbound = (request) => {
    cas.push(request.ca);
    return fake.outbound(request);
  };
  const config = kubernetesTarget.config.parse({ in_cluster: true });
  assert.equal(kubernetesTarget.host(config), 'kubernetes.default.svc');
  const target = kubernetesTarget.create(config, { world: new TestWorld(), outbound, guard: loopbackGuard });
  const { first } = await materials();
  files.set(`${account}/token`, 'expired');
  await refusal(target.install(first, null, signal));
  files.set(`${account}/token`, `${fakeKubernetes.secrets[0]}\n`);
  await target.install(first, null, signal);
  assert.deepEqual(product.held(), [heldOf(first)]);
  assert.deepEqual(cas, ['PEM of the cluster', 'PEM of the cluster']);
});

test('kubernetes: in_cluster outside a pod is an error with the path of the service account', {
  skip: existsSync(account) && 'this machine is a pod',
}, async (t) => {
  const { world, fake } = await startTarget(t, fakeKubernetes);
  const config = kubernetesTarget.config.parse({ in_cluster: true });
  const target = kubernetesTarget.create(config, { world, outbound: fake.outbound, guard: loopbackGuard });
  const { message } = await refusal(target.install((await materials()).first, null, signal));
  assert.match(
    message,
    /^failed to read the service account in \/var\/run\/secrets\/kubernetes\.io\/serviceaccount: /,
  );
  assert.match(message, /no such file/);
});

const refused: readonly [settings: object, field: string, message: RegExp][] = [
  [{ token: 'x' }, 'server', /^is missing; it must be the URL of the Kubernetes API, or in_cluster true$/],
  [{ server: 'https://k8s.example' }, 'token', /^is missing; it must be a token of a service account$/],
  [
    { server: 'http://k8s.example', token: 'x' },
    'server',
    /^must be an https:\/\/ URL without user, query and fragment/,
  ],
  [
    { server: 'https://k8s.example', token: 'a b' },
    'token',
    /^must be a token of a service account, without spaces/,
  ],
  [{ in_cluster: true, token: 'x' }, 'in_cluster', /^takes server, token and ca from the service account/],
  [{ in_cluster: true, server: 'https://k8s.example' }, 'in_cluster', /leave them out$/],
  [{ in_cluster: true, namespace: 'a/b' }, 'namespace', /^must be a namespace: letters, digits/],
  [{ in_cluster: true, secret: '' }, 'secret', /^must be the name of a secret: letters, digits/],
  [{ in_cluster: 'yes' }, 'in_cluster', /expected boolean/],
];
for (const [settings, field, message] of refused) {
  test(`kubernetes: the settings ${JSON.stringify(settings)} are rejected`, () => {
    const issue = kubernetesTarget.config.safeParse(settings).error?.issues[0];
    assert.deepEqual(issue?.path, [field]);
    assert.match(issue?.message ?? '', message);
  });
}
