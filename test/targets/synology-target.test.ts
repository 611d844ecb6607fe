/** The target `synology` against a fake of DSM 7, limited to sessions and certificates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type SynologyTargetConfig, synologyTarget } from '../../src/targets/synology-target.ts';
import type { FakeReply, FakeRequest } from '../harness/http/fake-server.ts';
import {
  type FakeProduct,
  type FakeTarget,
  type Held,
  heldFrom,
  heldOf,
  startTarget,
} from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';

const password = 'dsm pass+word/4711';
const wrong = 'dsm-wrong-0815';
const sid = 'sid-XyZ.4711~session';
const synotoken = 'syno--token4711';

type Certificate = {
  readonly id: string;
  readonly desc: string;
  is_default: boolean;
  held: Held | undefined;
};

type Dsm = FakeProduct & {
  readonly sessions: Set<string>;
  /** With the one that DSM comes with. */
  readonly certificates: Certificate[];
};

/** DSM reports failures with status 200. */
const failure = (code: number): FakeReply => ({ status: 200, json: { error: { code }, success: false } });

const api: FakeTarget<SynologyTargetConfig, Dsm> = {
  type: synologyTarget,
  settings: (url) => ({ url, account: 'vault', password, device_id: 'device-1' }),
  wrong: { password: wrong },
  denial: /^failed to sign in: DSM answered with error 400 \(wrong account or password\)$/,
  wrongSecret: wrong,
  secrets: [password, sid, synotoken],
  isInstallation: ({ query }) => query.get('method') === 'import',
  isLogin: (request) => callOf(request).call === 'SYNO.API.Auth login 6',
  error: (status, words) => ({ status, json: { error: { code: 117, errors: words }, success: false } }),
  hasWords: false,
  create: () => {
    const sessions = new Set<string>();
    const certificates: Certificate[] = [{ id: 'aBcDeF', desc: '', is_default: true, held: undefined }];
    return {
      ...{ sessions, certificates },
      held: () => certificates.flatMap(({ held }) => held ?? []),
      handler: (request) => {
        if (request.method !== 'POST' || request.path !== '/webapi/entry.cgi') return undefined;
        const { call, parameters, files } = callOf(request);
        if (call === 'SYNO.API.Auth login 6') {
          if (parameters.account !== 'vault' || parameters.passwd !== password) return failure(400);
          if (parameters.device_id !== 'device-1') return failure(403);
          assert.deepEqual([parameters.format, parameters.enable_syno_token], ['sid', 'yes']);
          sessions.add(sid);
          return { status: 200, json: { data: { sid, synotoken, is_portal_port: false }, success: true } };
        }
        if (!sessions.has(parameters._sid ?? '') || request.headers['x-syno-token'] !== synotoken)
          return failure(119);
        if (call === 'SYNO.API.Auth logout 6') {
          sessions.clear();
          return { status: 200, json: { success: true } };
        }
        if (call === 'SYNO.Core.Certificate.CRT list 1') {
          const shown = certificates.map(({ held: _, ...rest }) => ({
            ...rest,
            user_deletable: true,
            services: [],
          }));
          return { status: 200, json: { data: { certificates: shown }, success: true } };
        }
        if (call !== 'SYNO.Core.Certificate import 1') return failure(103);
        const held = heldFrom((files.cert ?? '') + (files.inter_cert ?? ''), files.key ?? '');
        if (held === undefined) return failure(5510);
        return imported(certificates, parameters, held);
      },
    };
  },
};

function imported(certificates: Certificate[], parameters: Record<string, string>, held: Held): FakeReply {
  const { id = '', desc = '', as_default } = parameters;
  const old = certificates.findIndex((one) => one.id === id);
  if (id !== '' && old === -1) return failure(5503);
  if (as_default === 'true') for (const one of certificates) one.is_default = false;
  const next = { id: id || `id-${certificates.length}`, desc, is_default: as_default === 'true', held };
  certificates.splice(old === -1 ? certificates.length : old, old === -1 ? 0 : 1, next);
  return { status: 200, json: { data: { id: next.id, restart_httpd: true }, success: true } };
}

type Call = {
  readonly call: string;
  readonly parameters: Record<string, string>;
  readonly files: Record<string, string>;
};

/** The API, method and version, and what comes with them in the query, a form or the parts of RFC 7578. */
function callOf({ query, headers, body }: FakeRequest): Call {
  const parameters = Object.fromEntries(query);
  const files: Record<string, string> = {};
  const boundary = /^multipart\/form-data; boundary=(\S+)$/.exec(headers['content-type'] ?? '')?.[1];
  if (boundary === undefined) Object.assign(parameters, Object.fromEntries(new URLSearchParams(body)));
  else {
    const parts = `\r\n${body}`.split(`\r\n--${boundary}`);
    assert.deepEqual([parts[0], parts.at(-1)], ['', '--\r\n']);
    for (const part of parts.slice(1, -1)) {
      const [, name = '', file, value = ''] =
        /^\r\nContent-Disposition: form-data; name="(\w+)"(; filename="[\w.]+"\r\nContent-Type: \S+)?\r\n\r\n([\s\S]*)$/.exec(
          part,
        ) ?? [];
      (file === undefined ? parameters : files)[name] = value;
    }
  }
  return { call: `${parameters.api} ${parameters.method} ${parameters.version}`, parameters, files };
}

targetScenarios(api);

const { signal } = new AbortController();

test('synology: the certificate with the description is replaced, and others stay as they are', async (t) => {
  const { product, install, made } = await startTarget(t, api);
  const { first, second } = await materials();
  const other = { id: 'other', desc: 'web 2', is_default: false, held: undefined };
  product.certificates.push(other, { id: 'mine', desc: 'web', is_default: false, held: undefined });
  await install(first);
  await install(second);
  assert.deepEqual(product.certificates.slice(1), [
    other,
    { id: 'mine', desc: 'web', is_default: false, held: heldOf(second) },
  ]);
  await made({ description: 'vault: {certificate}' }).install(first, null, signal);
  assert.deepEqual(
    product.certificates.slice(3).map(({ desc, held }) => [desc, held]),
    [['vault: web', heldOf(first)]],
  );
});

test('synology: a certificate becomes the default one with as_default only, and stays it when replaced', async (t) => {
  const { product, install, made } = await startTarget(t, api);
  const { first, second } = await materials();
  const defaults = () => product.certificates.filter((one) => one.is_default).map(({ id }) => id);
  await install(first);
  assert.deepEqual(defaults(), ['aBcDeF']);
  await made({ as_default: true }).install(first, null, signal);
  assert.deepEqual(defaults(), ['id-1']);
  await install(second);
  assert.deepEqual(defaults(), ['id-1']);
});

test('synology: a certificate without a chain has no part for it', async (t) => {
  const { product, install } = await startTarget(t, api);
  const { first } = await materials();
  await install({ ...first, chain: '', fullchain: first.certificate });
  assert.deepEqual(product.held(), [{ ...heldOf(first), chain: '' }]);
});

const isMethod = (method: string) => (request: FakeRequest) => callOf(request).parameters.method === method;

for (const method of ['list', 'import']) {
  test(`synology: the session is ended after a failure to ${method}, and its error is reported`, async (t) => {
    const { fake, product, install } = await startTarget(t, api);
    fake.interrupt(failure(105), isMethod(method));
    const { message } = await refusal(install((await materials()).first));
    assert.match(
      message,
      /certificates?: DSM answered with error 105 \(the account must be an administrator\)$/,
    );
    assert.equal(fake.requests.filter(isMethod('logout')).length, 1);
    assert.equal(product.sessions.size, 0);
  });
}

test('synology: an installation succeeds if only the end of the session fails', async (t) => {
  const { fake, product, install } = await startTarget(t, api);
  fake.interrupt(failure(119), isMethod('logout'));
  const { first } = await materials();
  await install(first);
  assert.deepEqual(product.held(), [heldOf(first)]);
});

const failures: readonly [code: number | undefined, words: RegExp][] = [
  [401, /error 401 \(the account is disabled\)$/],
  [403, /error 403 \(the account needs a second factor: set device_id\)$/],
  [407, /error 407 \(the address of the vault is blocked\)$/],
  [999, /answered with error 999$/],
  [undefined, /answered with an error$/],
];
for (const [code, words] of failures) {
  test(`synology: a sign-in that fails with the code ${code} is reported with what to do`, async (t) => {
    const { fake, install } = await startTarget(t, api);
    fake.interrupt({ status: 200, json: { success: false, ...(code !== undefined && { error: { code } }) } });
    assert.match((await refusal(install((await materials()).first))).message, words);
    assert.equal(fake.requests.length, 1);
  });
}

const refused: readonly [change: object, message: RegExp][] = [
  [{ url: 'http://nas.example:5000' }, /^must be an https:\/\/ URL without user, query and fragment/],
  [{ account: undefined }, /^is missing; it must be the name of an administrator$/],
  [{ password: undefined }, /^is missing; it must be the password of the administrator$/],
  [{ device_id: 'a b' }, /^must be the id of a device that the second factor remembers, without spaces/],
  [{ description: 'a "b"' }, /^must not contain quotes, backslashes or control characters$/],
  [{ description: 'a\r\nb' }, /^must not contain quotes, backslashes or control characters$/],
  [{ as_default: 'yes' }, /expected boolean/],
];
for (const [change, message] of refused) {
  test(`synology: the setting ${JSON.stringify(change)} is rejected`, () => {
    const settings = { ...api.settings('https://nas.example:5001'), ...change };
    assert.match(synologyTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
