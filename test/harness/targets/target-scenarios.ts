/** Scenarios that every deploy target with an HTTP API must pass. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { inspect } from 'node:util';
import { minute } from '../../../src/base/duration.ts';
import { type Material, TargetError } from '../../../src/targets/target.ts';
import { type FakeProduct, type FakeTarget, heldOf, startTarget, type TargetBench } from './fake-target.ts';
import { type Materials, makeMaterials } from './material.ts';

type Api = FakeTarget<unknown>;
type Bench = TargetBench<FakeProduct>;
type Scenario = (given: { api: Api; t: TestContext } & Materials & Bench) => Promise<void>;

const scenarios: Readonly<Record<string, Scenario>> = {
  'the certificate, its chain and its private key are installed exactly': async ({
    product,
    install,
    first,
  }) => {
    await install(first);
    assert.deepEqual(product.held(), [heldOf(first)]);
  },
  'a second version replaces the first one': async ({ product, install, first, second }) => {
    const { remoteId } = await install(first);
    await install(second, remoteId);
    assert.deepEqual(product.held(), [heldOf(second)]);
  },
  'an installation that is repeated changes nothing': async ({ product, install, first }) => {
    const { remoteId } = await install(first);
    assert.deepEqual(await install(first, remoteId), { ...(remoteId !== undefined && { remoteId }) });
    assert.deepEqual(product.held(), [heldOf(first)]);
  },
  'wrong credentials are reported in the words of the product, without the credentials': async (given) => {
    const { api, product, install, made, first, second } = given;
    const { remoteId = null } = await install(first);
    const { install: installs, isInstalled } = made(api.wrong);
    const { signal } = new AbortController();
    const { privateKey: _, ...facts } = first;
    const works = [
      () => installs(second, remoteId, signal),
      ...(isInstalled === undefined ? [] : [() => isInstalled(facts, remoteId, signal)]),
    ];
    for (const work of works) {
      const error = await refusal(work());
      assert.match(error.message, api.denial);
      assertKept(error, [...api.secrets, api.wrongSecret], second);
    }
    assert.deepEqual(product.held(), [heldOf(first)]);
  },
  'an error that repeats the private key and the credentials is reported without them': async (given) => {
    const { api, fake, install, first } = given;
    const key = first.privateKey.expose();
    const forms = [...api.secrets, key, key.replaceAll('\n', ' '), Buffer.from(key).toString('base64')];
    fake.interrupt(
      api.error(500, `overheated\n\u0007 ${forms.join(' ')} ${'x'.repeat(5000)}`),
      api.isInstallation,
    );
    const error = await refusal(install(first));
    assert.match(error.message, /^failed to [^\p{Cc}]{10,500}$/u);
    assert.equal(error.message.includes('overheated'), api.hasWords);
    assertKept(error, api.secrets, first);
  },
  'an error page that is not JSON is reported by its status': async ({ api, fake, install, first }) => {
    fake.interrupt({ status: 502, text: '<html>hotel</html>' }, api.isInstallation);
    const { message } = await refusal(install(first));
    assert.match(message, /^failed to .+: 127\.0\.0\.1:\d+ responded with 502 Bad Gateway$/);
  },
  'a redirect is not followed': async ({ api, fake, install, first, product }) => {
    const headers = { Location: `${fake.url}/elsewhere` };
    fake.interrupt({ status: 307, headers }, api.isInstallation);
    const { message } = await refusal(install(first));
    assert.match(message, / responded with 307 Temporary Redirect; redirects are not followed$/);
    assert(fake.requests.every(({ path }) => path !== '/elsewhere'));
    assert.deepEqual(product.held(), []);
  },
  'a Retry-After is returned with the error': async ({ api, fake, install, first }) => {
    fake.interrupt(
      { ...api.error(429, 'slow down'), status: 429, headers: { 'Retry-After': '120' } },
      api.isInstallation,
    );
    assert.equal((await refusal(install(first))).retryAfterMs, 2 * minute);
  },
  'an abort ends an installation that gets no response': async ({ api, fake, target, first }) => {
    const stop = new AbortController();
    const arrived = fake.hang(api.isInstallation);
    const work = target.install(first, null, stop.signal);
    await Promise.race([arrived, work]);
    stop.abort();
    assert.match(
      (await refusal(work)).message,
      /^failed to .+: the request to 127\.0\.0\.1:\d+ was canceled$/,
    );
  },
  'a refused connection is reported with its address': async ({ api, made, first }) => {
    const work = made(api.settings('http://127.0.0.1:1')).install(first, null, new AbortController().signal);
    assert.match(
      (await refusal(work)).message,
      /^failed to .+: cannot connect to 127\.0\.0\.1:1: connection refused/,
    );
  },
  'a server with a private CA is trusted only with the setting ca': async ({ api, t, server, ca, first }) => {
    const { made, product } = await startTarget(t, api, { tls: server });
    const { signal } = new AbortController();
    const { message } = await refusal(made({}).install(first, null, signal));
    assert.match(message, /the certificate of 127\.0\.0\.1:\d+ is not trusted/);
    assert.deepEqual(product.held(), []);
    await made({ ca }).install(first, null, signal);
    assert.deepEqual(product.held(), [heldOf(first)]);
  },
  'settings are strict, stay the same when validated again, and none of their secrets is in lists': async (
    given,
  ) => {
    const { api, fake } = given;
    const { config, host, destination } = api.type;
    const settings = JSON.parse(JSON.stringify(api.settings(fake.url)));
    const parsed = config.parse(settings);
    assert.deepEqual(config.parse(parsed), parsed);
    const issues = JSON.stringify(config.safeParse({ ...settings, tokne: 'x' }).error?.issues);
    assert.match(issues, /tokne/);
    const lists = `${host(parsed)} ${destination(parsed, 'web')}`;
    for (const secret of api.secrets) assert(!lists.includes(secret), lists);
  },
};

/** For products that can be asked what is installed. */
const checks: Readonly<Record<string, Scenario>> = {
  'only the installed version counts as installed': async ({ install, isInstalled, first, second }) => {
    assert.equal(await isInstalled(first), false);
    const { remoteId } = await install(first);
    assert.equal(await isInstalled(first, remoteId), true);
    assert.equal(await isInstalled(second, remoteId), false);
    const next = await install(second, remoteId);
    assert.equal(await isInstalled(second, next.remoteId), true);
    assert.equal(await isInstalled(first, next.remoteId), false);
  },
  'a certificate that another client replaced does not count as installed': async (given) => {
    const { product, install, isInstalled, first, second } = given;
    const { remoteId } = await install(first);
    product.replace?.(heldOf(second));
    assert.equal(await isInstalled(first, remoteId), false);
    const next = await install(first, remoteId);
    assert.equal(await isInstalled(first, next.remoteId), true);
  },
  'a certificate that another client deleted is installed again': async (given) => {
    const { product, install, isInstalled, first } = given;
    const { remoteId } = await install(first);
    product.clear?.();
    assert.equal(await isInstalled(first, remoteId), false);
    const next = await install(first, remoteId);
    assert.equal(await isInstalled(first, next.remoteId), true);
    assert.deepEqual(product.held(), [heldOf(first)]);
  },
  'a check transfers no private key': async ({ fake, install, isInstalled, first }) => {
    const { remoteId } = await install(first);
    fake.responses.length = 0;
    assert.equal(await isInstalled(first, remoteId), true);
    const key = first.privateKey.expose();
    const [, line = ''] = key.split('\n');
    for (const response of fake.responses) {
      assert(!response.includes(line) && !response.includes(Buffer.from(key).toString('base64')), response);
    }
  },
};

const strange = {
  'not JSON': { text: 'Welcome to the hotel network!' },
  'other JSON': { json: { not: 'expected' } },
};

/** Runs all scenarios for one type. */
export function targetScenarios<Config, Product extends FakeProduct>(
  given: FakeTarget<Config, Product>,
): void {
  const api = given as unknown as Api;
  const { type } = api.type;
  const canAsk = api.type.create(
    api.type.config.parse(api.settings('http://127.0.0.1:1')),
    {} as never,
  ).isInstalled;
  const all = Object.entries({ ...scenarios, ...(canAsk !== undefined && checks) });
  for (const [title, scenario] of all) {
    test(`${type}: ${title}`, async (t) => {
      await scenario({ api, t, ...(await materials()), ...(await startTarget(t, api)) });
    });
  }
  test(`${type}: the manual says whether the vault checks daily what is installed`, () => {
    const manual = readFileSync(new URL('../../../docs/how-to/deploy-targets.md', import.meta.url), 'utf8');
    const [, checked] = new RegExp(`^\\| \`${type}\` \\|.* \\| (yes|no) \\|$`, 'm').exec(manual) ?? [];
    assert.equal(checked, canAsk === undefined ? 'no' : 'yes');
  });
  if (api.ignoresResponses === true) return;
  for (const [what, reply] of Object.entries(strange)) {
    test(`${type}: a response that is ${what} is an error`, async (t) => {
      const { fake, install, isInstalled } = await startTarget(t, api);
      const { first } = await materials();
      fake.interrupt({ status: 200, ...reply }, api.isInstallation);
      assert.match((await refusal(install(first))).message, /^failed to .+: unexpected response$/);
      if (canAsk === undefined) return;
      const { remoteId } = await install(first);
      fake.interrupt({ status: 200, ...reply }, (request) => api.isLogin?.(request) !== true);
      assert.match(
        (await refusal(isInstalled(first, remoteId))).message,
        /^failed to .+: unexpected response$/,
      );
    });
  }
}

let made: Promise<Materials> | undefined;

/** The certificates of the scenarios, issued once per test file. */
export function materials(): Promise<Materials> {
  made ??= makeMaterials();
  return made;
}

/** The error of an operation that must fail. */
export async function refusal(work: Promise<unknown>): Promise<TargetError> {
  const error = await work.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert(error instanceof TargetError, inspect(error));
  return error;
}

/** Fails if the error, inspected as a log would, contains a secret or a line of the private key. */
function assertKept(error: TargetError, secrets: readonly string[], { privateKey }: Material): void {
  const shown = inspect(error, { depth: 20 });
  const key = privateKey.expose();
  const lines = key.split('\n').filter((line) => line.length > 20 && !line.startsWith('-----'));
  for (const secret of [...secrets, ...lines, Buffer.from(key).toString('base64').slice(0, 64)]) {
    assert(!shown.includes(secret), `a secret leaked: ${shown}`);
  }
}
