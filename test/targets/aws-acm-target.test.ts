/** The target `aws-acm` against a fake of AWS Certificate Manager that verifies signatures with code of its own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type AwsAcmTargetConfig, awsAcmTarget } from '../../src/targets/aws-acm-target.ts';
import { isAwsSigned } from '../dns/providers/aws-signature.ts';
import type { FakeReply } from '../harness/http/fake-server.ts';
import {
  type FakeProduct,
  type FakeTarget,
  fromBase64,
  type Held,
  heldFrom,
  heldOf,
  startTarget,
} from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';

const keys = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+acm-secret',
  sessionToken: 'session/Token+acm4711==',
};
const wrong = 'aws-wrong-acm-0815';
const scope = { region: 'eu-central-1', service: 'acm' };

type Acm = FakeProduct & {
  /** By ARN. */
  readonly certificates: Map<string, Held & { readonly tags: unknown }>;
};

const failure = (status: number, type: string, message: string): FakeReply => ({
  status,
  json: { __type: type, message },
  headers: { 'Content-Type': 'application/x-amz-json-1.1' },
});

const arnOf = (id: number) => `arn:aws:acm:eu-central-1:123456789012:certificate/${'0'.repeat(8)}-${id}`;

const api: FakeTarget<AwsAcmTargetConfig, Acm> = {
  type: awsAcmTarget,
  settings: (url) => ({
    access_key_id: keys.accessKeyId,
    secret_access_key: keys.secretAccessKey,
    session_token: keys.sessionToken,
    region: scope.region,
    base_url: url,
  }),
  wrong: { secret_access_key: wrong },
  denial: / responded with 400 InvalidSignatureException: The request signature we calculated does not match/,
  wrongSecret: wrong,
  secrets: [keys.secretAccessKey, keys.sessionToken],
  isInstallation: ({ headers }) => headers['x-amz-target'] === 'CertificateManager.ImportCertificate',
  error: (status, words) => failure(status, 'InternalFailure', words),
  hasWords: true,
  create: () => {
    const certificates: Acm['certificates'] = new Map();
    let imports = 0;
    return {
      certificates,
      held: () => [...certificates.values()].map(({ tags: _, ...held }) => held),
      replace: (other) => {
        for (const [arn, { tags }] of certificates) certificates.set(arn, { ...other, tags });
      },
      clear: () => certificates.clear(),
      handler: (request) => {
        const { method, path, headers, body } = request;
        if (method !== 'POST' || path !== '/') return failure(404, 'UnknownOperationException', '');
        assert.equal(headers['content-type'], 'application/x-amz-json-1.1');
        if (!isAwsSigned(request, keys, scope)) {
          const words = `The request signature we calculated does not match: ${headers['x-amz-security-token']}`;
          return failure(400, 'InvalidSignatureException', words);
        }
        const { CertificateArn: arn, ...input } = JSON.parse(body);
        const known = certificates.get(arn);
        if (arn !== undefined && known === undefined) {
          return failure(400, 'ResourceNotFoundException', `Could not find certificate ${arn}.`);
        }
        if (headers['x-amz-target'] === 'CertificateManager.GetCertificate') {
          assert(known);
          return { status: 200, json: { Certificate: known.certificate, CertificateChain: known.chain } };
        }
        if (!api.isInstallation(request)) return failure(400, 'UnknownOperationException', '');
        const { Certificate, CertificateChain, PrivateKey, Tags, ...others } = input;
        assert.deepEqual(others, {});
        if (arn !== undefined && Tags !== undefined) {
          return failure(400, 'ValidationException', 'Tagging is not permitted on re-import.');
        }
        // ACM takes the certificate alone, and the chain without it.
        const [certificate, chain] = [fromBase64(Certificate), fromBase64(CertificateChain ?? '')];
        const held = heldFrom(certificate + chain, fromBase64(PrivateKey));
        if (held?.certificate !== certificate) {
          return failure(400, 'ValidationException', 'The certificate does not match the private key.');
        }
        imports += known === undefined ? 1 : 0;
        const next = arn ?? arnOf(imports);
        certificates.set(next, { ...held, tags: known?.tags ?? Tags });
        return { status: 200, json: { CertificateArn: next } };
      },
    };
  },
};

targetScenarios(api);

const { signal } = new AbortController();

test('aws-acm: the first import has a tag, and later ones keep its ARN', async (t) => {
  const { product, install } = await startTarget(t, api);
  const { first, second } = await materials();
  assert.deepEqual(await install(first), { remoteId: arnOf(1) });
  assert.deepEqual(await install(second, arnOf(1)), { remoteId: arnOf(1) });
  const tags = [{ Key: 'certificate-vault', Value: 'web' }];
  assert.deepEqual([...product.certificates], [[arnOf(1), { ...heldOf(second), tags }]]);
});

test('aws-acm: a configured ARN is replaced in place of the one of the last import, and its tags stay', async (t) => {
  const { product, made } = await startTarget(t, api);
  const { first, second } = await materials();
  product.certificates.set(arnOf(7), { ...heldOf(first), tags: 'of others' });
  const target = made({ certificate_arn: arnOf(7) });
  assert.deepEqual(await target.install(second, arnOf(1), signal), { remoteId: arnOf(7) });
  assert.deepEqual([...product.certificates], [[arnOf(7), { ...heldOf(second), tags: 'of others' }]]);
  assert.equal(await target.isInstalled?.(second, null, signal), true);
});

test('aws-acm: a configured ARN that does not exist is an error, and nothing is imported', async (t) => {
  const { product, made } = await startTarget(t, api);
  const work = made({ certificate_arn: arnOf(7) }).install((await materials()).first, null, signal);
  assert.match(
    (await refusal(work)).message,
    /ResourceNotFoundException: Could not find certificate arn:aws:acm/,
  );
  assert.deepEqual(product.held(), []);
});

test('aws-acm: a certificate without a chain is imported without one', async (t) => {
  const { fake, product, install } = await startTarget(t, api);
  const { first } = await materials();
  await install({ ...first, chain: '', fullchain: first.certificate });
  assert.equal('CertificateChain' in JSON.parse(fake.requests[0]?.body ?? ''), false);
  assert.deepEqual(product.held(), [{ ...heldOf(first), chain: '' }]);
});

test('aws-acm: a missing permission is reported, as AWS spells it', async (t) => {
  const { fake, install } = await startTarget(t, api);
  const Message =
    'User: arn:aws:iam::123456789012:user/vault is not authorized to perform: acm:ImportCertificate';
  fake.interrupt({
    status: 400,
    json: { __type: 'com.amazon.coral.service#AccessDeniedException', Message },
  });
  const { message } = await refusal(install((await materials()).first));
  assert(message.endsWith(` responded with 400 AccessDeniedException: ${Message}`), message);
});

test('aws-acm: without base_url, requests go to the endpoint of the region', async (t) => {
  const { product, made } = await startTarget(t, api, { origin: 'https://acm.eu-central-1.amazonaws.com' });
  const { first } = await materials();
  await made({ base_url: undefined }).install(first, null, signal);
  assert.deepEqual(product.held(), [heldOf(first)]);
});

test('aws-acm: a region in China has another domain', () => {
  const settings = { ...api.settings('https://acm.example'), base_url: undefined, region: 'cn-north-1' };
  assert.equal(awsAcmTarget.host(awsAcmTarget.config.parse(settings)), 'acm.cn-north-1.amazonaws.com.cn');
});

const refused: readonly [change: object, message: RegExp][] = [
  [{ access_key_id: undefined }, /^is missing; it must be an AWS access key id$/],
  [
    { secret_access_key: 'a b' },
    /^must be the secret access key that belongs to access_key_id, without spaces/,
  ],
  [{ session_token: '' }, /^must be the session token of temporary credentials, without spaces/],
  [{ region: undefined }, /^is missing; it must be a region, such as eu-central-1$/],
  [{ region: 'eu-central-1.evil.example/' }, /^must be a region, such as eu-central-1$/],
  [
    { certificate_arn: 'arn:aws:acm:eu-central-1:1:certificate/x' },
    /^must be the ARN of an imported certificate$/,
  ],
  [{ base_url: 'http://acm.example' }, /^must be an https:\/\/ URL without user, query and fragment/],
];
for (const [change, message] of refused) {
  test(`aws-acm: the setting ${JSON.stringify(change)} is rejected`, () => {
    const settings = { ...api.settings('https://acm.example'), ...change };
    assert.match(awsAcmTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
