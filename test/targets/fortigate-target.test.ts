/** The target `fortigate` against a fake of the REST API of FortiOS 7, limited to local certificates and their use. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type FortigateTargetConfig, fortigateTarget } from '../../src/targets/fortigate-target.ts';
import type { FakeReply, FakeRequest } from '../harness/http/fake-server.ts';
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

const token = 'fgt-token-q1w2e3r4t5z6';
const wrong = 'fgt-wrong-0815-0815';

type Firewall = FakeProduct & {
  readonly certificates: Map<string, Held & { readonly scope: string }>;
  /** Where each service, by its path, finds the name of its certificate. */
  readonly settings: Map<string, Record<string, string>>;
  /** Certificates that a policy presents. */
  readonly policies: Set<string>;
};

const failure = (http_status: number, code: number): FakeReply => ({
  status: http_status,
  json: { http_status, status: 'error', error: code, vdom: 'root', version: 'v7.4.8', build: 2795 },
});

const success = (results: unknown = undefined): FakeReply => ({
  status: 200,
  json: { http_status: 200, status: 'success', results, vdom: 'root', version: 'v7.4.8', build: 2795 },
});

const api: FakeTarget<FortigateTargetConfig, Firewall> = {
  type: fortigateTarget,
  settings: (url) => ({ url, token, use_for: ['admin'] }),
  wrong: { token: wrong },
  denial: /: 127\.0\.0\.1:\d+ responded with 401 Unauthorized$/,
  wrongSecret: wrong,
  secrets: [token],
  isInstallation: ({ method }) => method === 'POST',
  error: (status, words) => ({
    status,
    json: { http_status: status, status: 'error', error: -327, cli_error: words },
  }),
  hasWords: false,
  create: () => {
    const certificates: Firewall['certificates'] = new Map();
    const settings: Firewall['settings'] = new Map([
      ['system/global', { 'admin-server-cert': 'Fortinet_GUI_Server', hostname: 'fgt1' }],
      ['vpn.ssl/settings', { servercert: 'Fortinet_Factory', port: '443' }],
    ]);
    const policies = new Set<string>();
    const isUsed = (name: string) =>
      policies.has(name) || [...settings.values()].some((one) => Object.values(one).includes(name));
    return {
      ...{ certificates, settings, policies },
      held: () => [...certificates.values()].map(({ scope: _, ...held }) => held),
      replace: (other) => {
        certificates.set('by-hand', { ...other, scope: 'global' });
        settings.set('system/global', { 'admin-server-cert': 'by-hand' });
      },
      clear: () => {
        certificates.clear();
        settings.set('system/global', { 'admin-server-cert': 'Fortinet_GUI_Server' });
      },
      handler: (request) => {
        const { method, path, query, headers, body } = request;
        if (headers.authorization !== `Bearer ${token}`) return { status: 401, text: '' };
        if (method === 'POST' && path === '/api/v2/monitor/vpn-certificate/local/import') {
          const { certname, scope, type, file_content, key_file_content, ...others } = JSON.parse(body);
          assert.deepEqual([type, others, query.has('vdom')], ['regular', {}, scope === 'vdom']);
          if (certname.length > 35) return failure(500, -1);
          // In use, the entry cannot be written; otherwise it is a duplicate.
          if (certificates.has(certname)) return failure(500, isUsed(certname) ? -23 : -5);
          const held = heldFrom(fromBase64(file_content), fromBase64(key_file_content));
          if (held === undefined) return failure(500, -327);
          certificates.set(certname, { ...held, scope });
          return success();
        }
        const setting = settings.get(path.replace('/api/v2/cmdb/', ''));
        if (setting !== undefined && method === 'GET') return success(setting);
        if (setting !== undefined && method === 'PUT') {
          const changes = JSON.parse(body);
          if (!Object.values<string>(changes).every((name) => certificates.has(name)))
            return failure(500, -3);
          Object.assign(setting, changes);
          return success();
        }
        const name = decodeURIComponent(
          /^\/api\/v2\/cmdb\/vpn\.certificate\/local\/([^/]+)$/.exec(path)?.[1] ?? '',
        );
        const held = certificates.get(name);
        if (held === undefined) return failure(404, -3);
        if (method === 'GET') {
          const all = {
            name,
            certificate: held.certificate,
            'private-key': held.privateKey,
            range: held.scope,
          };
          const format = query.get('format')?.split('|');
          const fields = Object.entries(all).filter(([field]) => format?.includes(field) ?? true);
          return success([Object.fromEntries(fields)]);
        }
        if (method !== 'DELETE') return failure(405, -651);
        if (isUsed(name)) return failure(500, -23);
        certificates.delete(name);
        return success();
      },
    };
  },
};

targetScenarios(api);

const { signal } = new AbortController();
const isDelete = ({ method }: FakeRequest) => method === 'DELETE';

test('fortigate: a certificate is presented for each of use_for, and for nothing without it', async (t) => {
  const { product, made } = await startTarget(t, api);
  const { first, second } = await materials();
  const presented = () => [
    product.settings.get('system/global')?.['admin-server-cert'],
    product.settings.get('vpn.ssl/settings')?.servercert,
  ];
  await made({ use_for: [] }).install(first, null, signal);
  assert.deepEqual(presented(), ['Fortinet_GUI_Server', 'Fortinet_Factory']);
  await made({ use_for: ['admin', 'ssl-vpn'] }).install(second, 'web-v1', signal);
  assert.deepEqual(presented(), ['web-v2', 'web-v2']);
  assert.equal(product.settings.get('vpn.ssl/settings')?.port, '443');
  assert.deepEqual([...product.certificates.keys()], ['web-v2']);
});

test('fortigate: a certificate that only one of two services presents does not count as installed', async (t) => {
  const { product, made } = await startTarget(t, api);
  const { first } = await materials();
  const target = made({ use_for: ['admin', 'ssl-vpn'] });
  const { remoteId = null } = await target.install(first, null, signal);
  assert.equal(await target.isInstalled?.(first, remoteId, signal), true);
  product.settings.set('vpn.ssl/settings', { servercert: 'Fortinet_Factory' });
  assert.equal(await target.isInstalled?.(first, remoteId, signal), false);
});

test('fortigate: the old certificate stays if a policy still presents it', async (t) => {
  const { product, install } = await startTarget(t, api);
  const { first, second } = await materials();
  await install(first);
  product.policies.add('web-v1');
  assert.deepEqual(await install(second, 'web-v1'), { remoteId: 'web-v2' });
  assert.deepEqual([...product.certificates.keys()], ['web-v1', 'web-v2']);
});

test('fortigate: an old certificate that is gone already is no error', async (t) => {
  const { product, install } = await startTarget(t, api);
  const { second } = await materials();
  assert.deepEqual(await install(second, 'web-v1'), { remoteId: 'web-v2' });
  assert.deepEqual([...product.certificates.keys()], ['web-v2']);
});

test('fortigate: an old certificate that cannot be deleted for another reason is reported', async (t) => {
  const { fake, install } = await startTarget(t, api);
  const { first, second } = await materials();
  await install(first);
  fake.interrupt(failure(500, -37), isDelete);
  const { message } = await refusal(install(second, 'web-v1'));
  assert.equal(message, 'failed to delete the old certificate web-v1: error -37');
});

test('fortigate: an import that was repeated goes on, whether or not the certificate is in use', async (t) => {
  const { product, made } = await startTarget(t, api);
  const { first } = await materials();
  await made({ use_for: [] }).install(first, null, signal);
  for (const _ of ['duplicate', 'in use']) await made({}).install(first, null, signal);
  assert.equal(product.settings.get('system/global')?.['admin-server-cert'], 'web-v1');
  assert.deepEqual(product.held(), [heldOf(first)]);
});

test('fortigate: another certificate of the same name is detected, and never presented', async (t) => {
  const { product, install, isInstalled } = await startTarget(t, api);
  const { first, second } = await materials();
  product.certificates.set('web-v1', { ...heldOf(second), scope: 'global' });
  assert.equal(await isInstalled(first, 'web-v1'), false);
  const { message } = await refusal(install(first));
  assert.equal(
    message,
    'failed to import the certificate web-v1: another certificate has this name; delete it or change the setting name',
  );
  assert.equal(product.settings.get('system/global')?.['admin-server-cert'], 'Fortinet_GUI_Server');
});

test('fortigate: the name of a certificate that FortiOS does not show is enough', async (t) => {
  const { fake, install, isInstalled } = await startTarget(t, api);
  const { first } = await materials();
  await install(first);
  fake.interrupt(success([{ name: 'web-v1', certificate: '' }]));
  assert.equal(await isInstalled(first, 'web-v1'), true);
});

test('fortigate: an import that FortiOS rejects is reported with its code, and presents nothing', async (t) => {
  const { fake, product, install } = await startTarget(t, api);
  fake.interrupt(failure(500, -327));
  const { message } = await refusal(install((await materials()).first));
  assert.equal(message, 'failed to import the certificate web-v1: error -327');
  assert.equal(product.settings.get('system/global')?.['admin-server-cert'], 'Fortinet_GUI_Server');
});

test('fortigate: a name is cut in front of the version to the 35 characters of FortiOS', async (t) => {
  const { product, install } = await startTarget(t, api);
  const { first } = await materials();
  const name = 'a-very-long-name-of-a-certificate.example.com';
  await install({ ...first, name, version: 12 });
  assert.deepEqual([...product.certificates.keys()], ['a-very-long-name-of-a-certifica-v12']);
});

test('fortigate: a virtual domain is part of each request, and the scope of the certificate', async (t) => {
  const { fake, product, made } = await startTarget(t, api);
  const { first, second } = await materials();
  const target = made({ vdom: 'dmz', use_for: ['ssl-vpn'] });
  const { remoteId = null } = await target.install(first, null, signal);
  assert.equal(await target.isInstalled?.(first, remoteId, signal), true);
  await target.install(second, remoteId, signal);
  assert.deepEqual([...new Set(fake.requests.map(({ query }) => query.get('vdom')))], ['dmz']);
  assert.deepEqual(
    [...product.certificates.values()].map(({ scope }) => scope),
    ['vdom'],
  );
});

const refused: readonly [change: object, message: RegExp][] = [
  [{ url: 'http://fgt.example' }, /^must be an https:\/\/ URL without user, query and fragment/],
  [{ token: undefined }, /^is missing; it must be the token of a REST API administrator$/],
  [{ token: 'a b' }, /^must be the token of a REST API administrator, without spaces or line breaks$/],
  [{ vdom: 'a/b' }, /^must be the name of a virtual domain: letters, digits/],
  [{ name: 'a b' }, /^must be the name of a certificate: letters, digits/],
  [{ use_for: ['ipsec'] }, /^must be admin or ssl-vpn$/],
];
for (const [change, message] of refused) {
  test(`fortigate: the setting ${JSON.stringify(change)} is rejected`, () => {
    const settings = { ...api.settings('https://fgt.example'), ...change };
    assert.match(fortigateTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
