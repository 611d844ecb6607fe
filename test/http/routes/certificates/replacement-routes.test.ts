/** Replacements over HTTP: previewed, created, followed and canceled, by those who may. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hour, second } from '../../../../src/base/duration.ts';
import type { PreviewView } from '../../../../src/domain/replacements/replacement-preview.ts';
import type {
  ReplacedCertificateView,
  ReplacementView,
} from '../../../../src/domain/replacements/replacement-views.ts';
import { checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf, importOne, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import { pageWith } from '../../../harness/http/sign-in-fixtures.ts';
import { tryWork } from '../../../harness/issuance/engine-vault.ts';
import { until } from '../../../harness/issuance/renewal-fixtures.ts';
import { renewed, round } from '../../../harness/issuance/replacements.ts';

const path = '/api/v1/replacements';

/** `shop` and `blog` have the label team=web, which is the reach of the operator olga; `ledger` has not. */
async function vaultOf(t: TestContext, options: Parameters<typeof checkedServer>[1] = {}) {
  const server = await checkedServer(t, {
    administrators: { a: 'alice', b: 'bob', o: 'olga', v: 'vera' },
    roles: { olga: 'operator', vera: 'viewer' },
    reaches: { olga: ['team=web'] },
    ...options,
  });
  const { vault } = server;
  await makeCertificate(vault, 'shop', undefined, { labels: ['team=web'] });
  await makeCertificate(vault, 'blog', undefined, { labels: ['team=web'] });
  await makeCertificate(vault, 'ledger', undefined, { labels: ['team=db'] });
  const page = (token: string) => pageWith(server, `vault_session=${token}`);
  const [alice, bob, olga, vera] = [page('a'), page('b'), page('o'), page('v')];
  const read = async <T>(response: Promise<Response>, status = 200): Promise<T> => {
    const found = await response;
    const text = await found.text();
    assert.equal(found.status, status, text);
    return JSON.parse(text) as T;
  };
  return { server, vault, alice, bob, olga, vera, read };
}

test('a replacement is created, followed to its end and recorded in the audit log', async (t) => {
  const { server, vault, alice, vera, read } = await vaultOf(t);
  const body = { issuer: 'local-ca', deadline: '2h' };
  const created = await read<ReplacementView>(alice.send('POST', path, body), 201);
  assert.deepEqual(
    [created.reason, created.state, created.certificates.waiting],
    ['superseded', 'running', 3],
  );
  assert.deepEqual([created.created_by, created.deadline_at], ['admin:alice', '2026-11-21T14:00:00Z']);
  await renewed(server);
  const rows = () => read<ReplacedCertificateView[]>(vera.send('GET', `${path}/${created.id}/certificates`));
  assert.deepEqual(
    (await rows()).map(({ state, old_version, new_version }) => [state, old_version, new_version]),
    Array(3).fill(['issued', 1, 2]),
  );
  server.world.advance(2 * hour);
  await round(vault);
  const [ended] = await read<ReplacementView[]>(vera.send('GET', path));
  assert.deepEqual([ended?.state, ended?.certificates.revoked], ['finished', 3]);
  const revoked = eventsOf(server.dataDir, 'certificate.revoke');
  assert.deepEqual(
    revoked.map(({ actor, detail }) => [actor, detail.reason]),
    Array(3).fill(['admin:alice', 'superseded']),
  );
  const [finish] = eventsOf(server.dataDir, 'replacement.finish');
  assert.deepEqual([finish?.resource, finish?.detail], [`replacement:${created.id}`, { revoked: 3 }]);
  assert.equal(eventsOf(server.dataDir, 'replacement.create').length, 1);
});

test('a client that waits for a new version gets it without another request', async (t) => {
  const { server, vault, alice, read } = await vaultOf(t);
  const { raw } = await makeKey(vault, { certificates: ['shop'], scopes: ['certificates:read'] });
  const file = '/api/v1/certificates/shop/certificate.crt';
  const first = await server.get(file, raw);
  const etag = first.headers.get('ETag') ?? assert.fail('no ETag');
  const old = await first.text();
  const waiting = server.get(`${file}?wait=60`, raw, { headers: { 'If-None-Match': etag } });
  await until(vault, () => server.context.waits.size === 1);
  await read(alice.send('POST', path, { certificate: 'shop', deadline: '0' }), 201);
  await round(vault);
  while ((await tryWork(vault)) !== undefined);
  await server.world.sleeping(1);
  server.world.advance(second);
  const answered = await waiting;
  assert.deepEqual([answered.status, (await answered.text()) === old], [200, false]);
});

test('a preview shows what is affected to a viewer, and creates nothing', async (t) => {
  const { server, vault, vera, read } = await vaultOf(t);
  await importOne(vault, 'bought', { chain: true });
  const preview = await read<PreviewView>(vera.send('POST', `${path}/preview`, { issuer: 'local-ca' }));
  assert.deepEqual([preview.replaced, preview.obstructed, preview.certificates.length], [3, 1, 4]);
  assert.deepEqual(await read(vera.send('GET', path)), []);
  assert.deepEqual(eventsOf(server.dataDir, 'replacement.create'), []);
  assert.equal((await vera.send('POST', path, { issuer: 'local-ca' })).status, 403);
});

test('invalid, unknown and empty selections are refused', async (t) => {
  const { alice } = await vaultOf(t);
  const cases: readonly (readonly [object, string])[] = [
    [{}, 'invalid_request'],
    [{ issuer: 'local-ca', certificate: 'shop' }, 'invalid_request'],
    [{ issuer: 'nowhere' }, 'invalid_request'],
    [{ certificate: 'shop', reason: 'boredom' }, 'invalid_request'],
    [{ certificate: 'shop', deadline: '31d' }, 'invalid_request'],
    [{ certificate: 'gone' }, 'certificate_not_found'],
    [{ labels: ['team=none'] }, 'nothing_to_replace'],
  ];
  for (const [body, code] of cases) {
    assert.equal(await codeOf(await alice.send('POST', path, body)), code, JSON.stringify(body));
  }
  for (const wrong of ['99', 'x', '0']) {
    assert.equal(await codeOf(await alice.send('GET', `${path}/${wrong}`)), 'replacement_not_found', wrong);
  }
});

test('an operator with a reach replaces what is within it, and sees only replacements of its own', async (t) => {
  const { server, alice, olga, read } = await vaultOf(t);
  const all = await read<ReplacementView>(alice.send('POST', path, { issuer: 'local-ca' }), 201);
  const own = await read<ReplacementView>(olga.send('POST', path, { issuer: 'local-ca' }), 201);
  assert.deepEqual([all.certificates.waiting, own.certificates.waiting], [3, 2]);
  const listed = await read<ReplacementView[]>(olga.send('GET', path));
  assert.deepEqual(
    listed.map(({ id }) => id),
    [own.id],
  );
  assert.equal(await codeOf(await olga.send('POST', path, { certificate: 'ledger' })), 'forbidden');
  for (const id of [all.id, 99]) {
    assert.equal(await codeOf(await olga.send('GET', `${path}/${id}`)), 'forbidden');
    assert.equal(await codeOf(await olga.send('GET', `${path}/${id}/certificates`)), 'forbidden');
    assert.equal(await codeOf(await olga.send('POST', `${path}/${id}/cancel`)), 'forbidden');
  }
  assert.equal(eventsOf(server.dataDir, 'access.refuse').length > 0, true);
  const rows = () => read<ReplacedCertificateView[]>(olga.send('GET', `${path}/${own.id}/certificates`));
  assert.deepEqual((await rows()).map(({ certificate }) => certificate).sort(), ['blog', 'shop']);
});

test('a canceled replacement revokes nothing more, and is canceled once', async (t) => {
  const { server, vault, olga, vera, read } = await vaultOf(t);
  const { id } = await read<ReplacementView>(olga.send('POST', path, { labels: ['team=web'] }), 201);
  await renewed(server);
  assert.equal((await vera.send('POST', `${path}/${id}/cancel`)).status, 403);
  const canceled = await read<ReplacementView>(olga.send('POST', `${path}/${id}/cancel`));
  assert.deepEqual([canceled.state, canceled.canceled_by], ['canceled', 'admin:olga']);
  server.world.advance(48 * hour);
  await round(vault);
  assert.deepEqual(eventsOf(server.dataDir, 'certificate.revoke'), []);
  assert.equal(await codeOf(await olga.send('POST', `${path}/${id}/cancel`)), 'replacement_finished');
});

test('a replacement waits for a second administrator if the vault asks for one', async (t) => {
  const { alice, bob, read } = await vaultOf(t, { secondApproval: true });
  const body = { certificate: 'shop' };
  const refused = await alice.send('POST', path, body);
  const { code, detail } = (await refused.json()) as { code: string; detail: string };
  assert.equal(code, 'approval_required');
  assert.match(detail, /Replace and revoke the certificate shop \(key-compromised\)/);
  assert.equal((await bob.send('POST', '/api/v1/pending-changes/1/approve')).status, 200);
  const other = { ...body, deadline: '0' };
  assert.equal(await codeOf(await alice.send('POST', path, other)), 'approval_required');
  await read(alice.send('POST', path, body), 201);
});

test('pages of replacements and of their certificates continue where they end', async (t) => {
  const { alice, read } = await vaultOf(t);
  for (let n = 0; n < 3; n += 1) await read(alice.send('POST', path, { issuer: 'local-ca' }), 201);
  for (const [list, key] of [
    [path, 'id'],
    [`${path}/1/certificates`, 'certificate'],
  ] as const) {
    const first = await alice.send('GET', `${list}?limit=2`);
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('Link') ?? '')?.[1] ?? assert.fail('no next');
    const rest = await read<Record<string, unknown>[]>(alice.send('GET', next.slice(next.indexOf('/api'))));
    const seen = [...((await first.json()) as Record<string, unknown>[]), ...rest].map((row) => row[key]);
    assert.equal(new Set(seen).size, 3, list);
  }
});
