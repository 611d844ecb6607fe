/** Labels of certificates over HTTP: set, changed, listed, and lost with the certificate. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/certificates';

type Named = { readonly name: string; readonly labels: readonly string[] };

async function labelled(t: TestContext) {
  const admin = await administration(t);
  const { vault } = admin.server;
  await makeCertificate(vault, 'api', undefined, { labels: ['team=web', 'env=prod'] });
  await makeCertificate(vault, 'blog', undefined, { labels: ['team=web', 'env=test'] });
  await makeCertificate(vault, 'db');
  const list = async (query: string) =>
    (await admin.expect<Named[]>(200, 'GET', `${path}${query}`)).map(({ name }) => name);
  return { ...admin, list };
}

suite('the list of certificates', () => {
  const cases: readonly (readonly [query: string, names: readonly string[]])[] = [
    ['?label=team%3Dweb', ['api', 'blog']],
    ['?label=team%3Dweb,env%3Dtest', ['blog']],
    ['?label=team%3Ddb', []],
    ['?label=team%3Dweb&search=ap', ['api']],
    ['?label=team%3Dweb&sort=expiry&status=valid', ['api', 'blog']],
    ['?label=team%3Dweb&issuer=', []],
  ];
  for (const [query, names] of cases) {
    test(`has with ${query} what fits`, async (t) => {
      const { list } = await labelled(t);
      assert.deepEqual(await list(query), names);
    });
  }

  test('keeps the filter on its next page', async (t) => {
    const { ask, list } = await labelled(t);
    const first = await ask('GET', `${path}?label=team%3Dweb&limit=1`);
    const [, next = assert.fail('no next page')] =
      /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? [];
    assert.deepEqual(await list(new URL(next).search), ['blog']);
  });

  test('refuses a text that is not a label and says how to write one', async (t) => {
    const { expect } = await labelled(t);
    const { detail } = await expect<{ detail: string }>(400, 'GET', `${path}?label=web`);
    assert.match(detail, /"web" is not a label: write a label as key=value, such as team=web/);
  });
});

test('a new certificate has its labels sorted, and the audit log names the keys that they open it to', async (t) => {
  const { server, expect } = await labelled(t);
  const key = await makeKey(server.vault, { certificates: [], certificate_labels: ['team=web'] });
  await makeKey(server.vault, { certificates: [], certificate_labels: ['team=db'] });
  const body = { name: 'shop', domains: ['shop.test'], labels: ['team=web', 'app=shop', 'team=web'] };
  const { certificate } = await expect<{ certificate: Named }>(201, 'POST', path, body);
  assert.deepEqual(certificate.labels, ['app=shop', 'team=web']);
  const { detail } = eventsOf(server.dataDir, 'certificate.create').at(-1) ?? assert.fail();
  assert.deepEqual(detail.labels, ['app=shop', 'team=web']);
  assert.deepEqual(detail.opened_to_api_keys, [key.id]);
});

suite('a change of labels', () => {
  test('replaces them, and the audit log has both and the keys of those that are new', async (t) => {
    const { server, expect } = await labelled(t);
    const web = await makeKey(server.vault, { certificates: [], certificate_labels: ['team=web'] });
    const prod = await makeKey(server.vault, { certificates: [], certificate_labels: ['env=prod'] });
    const { certificate } = await expect<{ certificate: Named }>(200, 'PATCH', `${path}/blog`, {
      labels: ['team=web', 'env=prod'],
    });
    assert.deepEqual(certificate.labels, ['env=prod', 'team=web']);
    const [{ detail } = assert.fail(), ...others] = eventsOf(server.dataDir, 'certificate.update');
    assert.deepEqual(others, []);
    assert.deepEqual(detail, {
      labels: ['env=prod', 'team=web'],
      opened_to_api_keys: [prod.id],
      before: { labels: ['env=test', 'team=web'] },
    });
    assert.notEqual(web.id, prod.id);
  });

  test('to the same ones is not recorded', async (t) => {
    const { server, expect } = await labelled(t);
    await expect(200, 'PATCH', `${path}/api`, { labels: ['env=prod', 'team=web'] });
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.update'), []);
  });

  for (const [what, labels, message] of [
    [
      'more than 16',
      Array.from({ length: 17 }, (_, index) => `k${index}=v`),
      /an object has at most 16 labels; remove some/,
    ],
    ['two values for a key', ['team=a', 'team=b'], /labels have each key once/],
    ['an invalid value', ['team=a,b'], /must not contain ","/],
  ] as const) {
    test(`to ${what} is refused`, async (t) => {
      const { expect } = await labelled(t);
      const { detail } = await expect<{ detail: string }>(400, 'PATCH', `${path}/api`, { labels });
      assert.match(detail, message);
    });
  }
});

test('a certificate that is deleted and restored has no labels', async (t) => {
  const { server, expect, list } = await labelled(t);
  const key = await makeKey(server.vault, { certificates: [], certificate_labels: ['team=web'] });
  await expect(204, 'DELETE', `${path}/api`);
  const [{ id } = assert.fail()] = await expect<{ id: number }[]>(200, 'GET', '/api/v1/deleted-certificates');
  const restored = await expect<{ certificate: Named; labels: string[] }>(
    200,
    'POST',
    `/api/v1/deleted-certificates/${id}/restore`,
    {},
  );
  assert.deepEqual(restored.certificate.labels, []);
  assert.deepEqual(restored.labels, ['env=prod', 'team=web']);
  assert.deepEqual(await list('?label=team%3Dweb'), ['blog']);
  assert.equal((await server.get(`${path}/api`, key.raw)).status, 403);
});

test('ensuring a certificate without labels keeps those that it has, and with labels replaces them', async (t) => {
  const { expect } = await labelled(t);
  const body = { domains: ['api.example.test'] };
  const kept = await expect<{ certificate: Named; changed: boolean }>(200, 'PUT', `${path}/api`, body);
  assert.deepEqual([kept.changed, kept.certificate.labels], [false, ['env=prod', 'team=web']]);
  const none = await expect<{ certificate: Named }>(200, 'PUT', `${path}/api`, { ...body, labels: [] });
  assert.deepEqual(none.certificate.labels, []);
});
