/** The target `proxmox` against a fake of the Proxmox VE API, limited to the certificates of one node. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ProxmoxTargetConfig, proxmoxTarget } from '../../src/targets/proxmox-target.ts';
import type { FakeReply } from '../harness/http/fake-server.ts';
import {
  type FakeProduct,
  type FakeTarget,
  fingerprintOf,
  type Held,
  heldFrom,
  heldOf,
  startTarget,
} from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';

const secret = '3f1c7a52-0b7e-4f0a-9a55-pve-secret';
const token = `vault@pve!deploy=${secret}`;
const wrong = '00000000-dead-beef-0000-pve-wrong';

/** The API has messages with a line break at the end. */
const error = (status: number, words: string): FakeReply => ({
  status,
  json: { message: `${words}\n`, data: null },
});

type Node = FakeProduct & { readonly setOwn: (held: Held) => void };

const api: FakeTarget<ProxmoxTargetConfig, Node> = {
  type: proxmoxTarget,
  settings: (url) => ({ url, token, node: 'pve1' }),
  wrong: { token: `vault@pve!deploy=${wrong}` },
  denial: /: 127\.0\.0\.1:\d+ responded with 401 invalid token value!$/,
  wrongSecret: wrong,
  secrets: [token, secret],
  isInstallation: ({ method }) => method === 'POST',
  error,
  hasWords: true,
  create: () => {
    let uploaded: Held | undefined;
    /** The file is what pveproxy presents only after a restart. */
    let presented: Held | undefined;
    let own: Held | undefined;
    const infoOf = (filename: string, held: Held | undefined) =>
      held === undefined
        ? []
        : [{ filename, fingerprint: fingerprintOf(held.certificate), pem: held.certificate }];
    return {
      held: () => (presented === undefined ? [] : [presented]),
      replace: (other) => {
        uploaded = other;
        presented = other;
      },
      clear: () => {
        uploaded = undefined;
        presented = undefined;
      },
      setOwn: (held) => {
        own = held;
      },
      handler: ({ method, path, headers, body }) => {
        // Authentication fails before there is a body: its words are in the status line.
        if (headers.authorization !== `PVEAPIToken=${token}`)
          return { status: 401, reason: 'invalid token value!', text: '' };
        if (!path.startsWith('/api2/json/nodes/pve1/certificates/'))
          return error(500, 'hostname lookup failed');
        if (method === 'GET' && path.endsWith('/info')) {
          return {
            status: 200,
            json: { data: [...infoOf('pve-ssl.pem', own), ...infoOf('pveproxy-ssl.pem', uploaded)] },
          };
        }
        if (method !== 'POST' || !path.endsWith('/custom'))
          return error(501, `Method '${method} ${path}' not implemented`);
        assert.equal(headers['content-type'], 'application/x-www-form-urlencoded');
        const {
          certificates = '',
          key = '',
          force,
          restart,
          ...others
        } = Object.fromEntries(new URLSearchParams(body));
        assert.deepEqual(others, {});
        if (uploaded !== undefined && force !== '1')
          return error(500, "Custom certificate exists but 'force' is not set.");
        const held = heldFrom(certificates, key);
        if (held === undefined) return error(500, 'certificate and key do not match');
        uploaded = held;
        if (restart === '1') presented = held;
        return { status: 200, json: { data: infoOf('pveproxy-ssl.pem', held)[0] } };
      },
    };
  },
};

targetScenarios(api);

test('proxmox: a certificate that only the node itself has does not count as installed', async (t) => {
  const { product, isInstalled } = await startTarget(t, api);
  const { first } = await materials();
  product.setOwn(heldOf(first));
  assert.equal(await isInstalled(first), false);
});

const errors: readonly [reply: FakeReply, words: string][] = [
  [
    error(403, 'Permission check failed (/nodes/pve1, Sys.Modify)'),
    '403 Permission check failed (/nodes/pve1, Sys.Modify)',
  ],
  [
    {
      status: 400,
      json: { message: 'Parameter verification failed.\n', errors: { key: 'invalid format' }, data: null },
    },
    '400 Parameter verification failed.; key: invalid format',
  ],
  [{ status: 596, reason: 'Connection timed out', text: '' }, '596 Connection timed out'],
];
for (const [reply, words] of errors) {
  test(`proxmox: the error of the node is reported: ${words}`, async (t) => {
    const { fake, install } = await startTarget(t, api);
    fake.interrupt(reply);
    const { message } = await refusal(install((await materials()).first));
    const { host } = new URL(fake.url);
    assert.equal(
      message,
      `failed to upload the certificate to the node pve1: ${host} responded with ${words}`,
    );
  });
}

const refused: readonly [change: object, message: RegExp][] = [
  [{ url: undefined }, /^is missing; it must be the URL of the API$/],
  [{ url: 'http://pve1.example:8006' }, /^must be an https:\/\/ URL without user, query and fragment/],
  [{ url: 'https://pve1.example:8006/?a=b' }, /^must be an https:\/\/ URL/],
  [{ token: undefined }, /^is missing; it must be an API token, USER@REALM!NAME=SECRET$/],
  [{ token: secret }, /^must be an API token, USER@REALM!NAME=SECRET$/],
  [{ token: 'vault@pve!deploy=two words' }, /^must be an API token, USER@REALM!NAME=SECRET, without spaces/],
  [{ node: undefined }, /^must be the name of a node$/],
  [{ node: 'pve1/x' }, /^must be the name of a node: letters, digits, dots/],
];
for (const [change, message] of refused) {
  test(`proxmox: the setting ${JSON.stringify(change)} is rejected`, () => {
    const settings = { ...api.settings('https://pve1.example:8006'), ...change };
    assert.match(proxmoxTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
