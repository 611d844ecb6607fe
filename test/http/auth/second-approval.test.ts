/** Destructive changes where the settings ask for a second administrator: requested, approved by another, used once. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { goodPassword, makeAdministrator, pageWith } from '../../harness/http/sign-in-fixtures.ts';
import { addWebhook, toldIn } from '../../harness/notifications/fixtures.ts';

type Change = { id: number; state: string; summary: string; requested_by: string; decided_by: string | null };

const certificate = '/api/v1/certificates/www';
const list = '/api/v1/pending-changes';

async function careful(t: TestContext, secondApproval = true) {
  const server = await checkedServer(t, {
    administrators: { a: 'alice', b: 'bob', o: 'olga', v: 'vera' },
    roles: { olga: 'operator', vera: 'viewer' },
    secondApproval,
  });
  await makeCertificate(server.vault, 'www');
  const page = (token: string) => pageWith(server, `vault_session=${token}`);
  const [alice, bob, olga, vera] = [page('a'), page('b'), page('o'), page('v')];
  const changes = async () => (await (await alice.send('GET', list)).json()) as Change[];
  const newest = async () => (await changes())[0] as Change;
  return { server, alice, bob, olga, vera, changes, newest };
}

suite('a change that needs a second administrator', () => {
  test('goes through once after the approval of another, with both names in the audit log', async (t) => {
    const { server, alice, bob, newest, changes } = await careful(t);
    await addWebhook(server.vault, 'http://127.0.0.1:1/');
    for (let times = 0; times < 2; times += 1) {
      const refused = await alice.send('DELETE', certificate);
      assert.equal(refused.status, 403);
      const { code, detail } = (await refused.json()) as { code: string; detail: string };
      assert.equal(code, 'approval_required');
      assert.match(detail, /approve this: Delete the certificate www\. It waits as pending change 1 until /);
    }
    assert.equal((await changes()).length, 1, 'repeating the request changes nothing');
    assert.deepEqual(await toldIn(server.vault), ['pending_change.created Delete the certificate www']);
    assert.equal((await bob.send('POST', `${list}/1/approve`)).status, 200);
    assert.equal((await newest()).state, 'approved');
    // Another than the requester, or another request, needs another approval.
    assert.equal(await codeOf(await bob.send('DELETE', certificate)), 'approval_required');
    assert.equal(await codeOf(await alice.send('DELETE', `${certificate}?force=true`)), 'approval_required');
    assert.equal((await alice.send('DELETE', certificate)).status, 204);
    await makeCertificate(server.vault, 'www');
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
    const told = (action: string) => eventsOf(server.dataDir, action)[0];
    assert.equal(told('pending_change.create')?.actor, 'admin:alice');
    assert.equal(told('pending_change.approve')?.actor, 'admin:bob');
    assert.equal(told('pending_change.approve')?.detail.requested_by, 'admin:alice');
    assert.equal(told('pending_change.apply')?.actor, 'admin:alice');
    assert.equal(told('pending_change.apply')?.detail.approved_by, 'admin:bob');
  });

  test('is approved neither by its requester, nor by a role that could not make it, nor by a key', async (t) => {
    const { server, alice, olga, vera, newest } = await careful(t);
    assert.equal(
      await codeOf(await alice.send('DELETE', '/api/v1/administrators/alice')),
      'administrator_not_found',
    );
    assert.equal(await codeOf(await alice.send('DELETE', '/api/v1/issuers/local-ca')), 'approval_required');
    const { id } = await newest();
    for (const page of [alice, olga, vera])
      assert.equal((await page.send('POST', `${list}/${id}/approve`)).status, 403);
    const { raw } = await makeKey(server.vault, { role: 'admin' });
    assert.equal((await server.get(`${list}/${id}/approve`, raw, { method: 'POST' })).status, 403);
    assert.equal((await newest()).state, 'pending');
  });

  test('of an API key waits for any administrator', async (t) => {
    const { server, alice, newest } = await careful(t);
    const { raw } = await makeKey(server.vault, { name: 'ci', role: 'operator' });
    const remove = () => server.get(certificate, raw, { method: 'DELETE' });
    assert.equal(await codeOf(await remove()), 'approval_required');
    const { id, requested_by } = await newest();
    assert.match(requested_by, /^api-key:\d+:ci$/);
    assert.equal((await alice.send('POST', `${list}/${id}/approve`)).status, 200);
    assert.equal((await remove()).status, 204);
  });

  test('keeps its approval if it fails, and loses it after a day', async (t) => {
    const { server, alice, bob, newest } = await careful(t);
    const key = await makeKey(server.vault, { certificates: ['www'] });
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
    await bob.send('POST', `${list}/1/approve`);
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'certificate_in_use');
    assert.equal((await newest()).state, 'approved');
    assert.equal(eventsOf(server.dataDir, 'pending_change.return')[0]?.detail.code, 'certificate_in_use');
    server.world.advance(day);
    assert.equal((await newest()).state, 'expired');
    assert.equal((await alice.send('POST', `/api/v1/api-keys/${key.id}/revoke`)).status, 200);
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
    assert.equal((await newest()).id, 2);
    server.world.advance(day);
    assert.equal(await codeOf(await bob.send('POST', `${list}/2/approve`)), 'pending_change_closed');
  });

  test('is rejected by another or withdrawn by its requester, and decided once', async (t) => {
    const { alice, bob, newest } = await careful(t);
    for (const [page, id] of [
      [bob, 1],
      [alice, 2],
    ] as const) {
      assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
      assert.equal((await page.send('POST', `${list}/${id}/reject`)).status, 200);
      assert.equal((await newest()).state, 'rejected');
      for (const verb of ['approve', 'reject'])
        assert.equal(await codeOf(await bob.send('POST', `${list}/${id}/${verb}`)), 'pending_change_closed');
    }
    for (const id of ['3', '0', 'x', '9'.repeat(30)])
      assert.equal(await codeOf(await bob.send('POST', `${list}/${id}/approve`)), 'pending_change_not_found');
  });

  test('cannot be approved in the database file, nor used again by an older row', async (t) => {
    const { server, alice, bob, newest } = await careful(t);
    const sql = (text: string, ...values: unknown[]) =>
      outside(server.dataDir, (db) => db.prepare(text).run(...values));
    await alice.send('DELETE', certificate);
    sql("update pending_changes set decision = 'approved', decided_by = 'admin:bob', decided_at = 1");
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
    const { id } = await newest();
    assert.equal(id, 2, 'the altered row counts for nothing');
    await bob.send('POST', `${list}/${id}/approve`);
    const approved = outside(server.dataDir, (db) =>
      db.prepare('select tag from pending_changes where id = ?').pluck().get(id),
    );
    assert.equal((await alice.send('DELETE', certificate)).status, 204);
    await makeCertificate(server.vault, 'www');
    sql('update pending_changes set applied_at = null, tag = ? where id = ?', approved, id);
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
  });

  test('removes something, or could give one person the rights of two', async (t) => {
    const { server, alice, newest } = await careful(t);
    const person = { name: 'mallory', password: goodPassword };
    const key = { name: 'ci', scopes: ['certificates:read'], certificates: ['*'] };
    const admin = await makeKey(server.vault, { name: 'admin', role: 'admin' });
    const plain = await makeKey(server.vault, { name: 'plain' });
    await makeAdministrator(server.vault, 'oscar', goodPassword, 'operator');
    for (const [method, path, body, summary] of [
      ['POST', '/administrators', person, 'Create the administrator mallory with the role admin'],
      [
        'POST',
        '/administrators',
        { ...person, role: 'operator', reach: ['team=web'], profiles: ['local-ca/web', 'local-ca/db'] },
        'Create the administrator mallory with the role operator with the reach team=web and with the profiles local-ca/web, local-ca/db',
      ],
      [
        'PATCH',
        '/administrators/oscar',
        { role: 'operator', profiles: ['local-ca/web'] },
        'Give the administrator oscar the role operator with the profiles local-ca/web',
      ],
      [
        'PATCH',
        '/administrators/oscar',
        { reach: [], profiles: [] },
        'Give the administrator oscar without a reach and without profiles',
      ],
      [
        'POST',
        '/api-keys',
        { ...key, role: 'viewer' },
        'Create the API key ci: role viewer; scopes certificates:read; certificates *; networks any; profiles any; client certificate none',
      ],
      [
        'PATCH',
        `/api-keys/${plain.id}`,
        { role: 'admin' },
        `Change the API key ${plain.id} (plain, role none): role admin`,
      ],
      [
        'PATCH',
        `/api-keys/${admin.id}`,
        { allowed_networks: [] },
        `Change the API key ${admin.id} (admin, role admin): networks any`,
      ],
      ['POST', `/api-keys/${admin.id}/rotate`, {}, `Rotate the API key ${admin.id} (admin, role admin)`],
      ['POST', '/certificates/www/revoke', {}, 'Revoke version 1 of the certificate www'],
    ] as const) {
      const response = await alice.send(method, `/api/v1${path}`, body);
      assert.equal(await codeOf(response), 'approval_required', summary);
      assert.equal((await newest()).summary, summary);
    }
    // Keys of clients, and ending a key in a hurry.
    assert.equal((await alice.send('POST', '/api/v1/api-keys', key)).status, 201);
    assert.equal((await alice.send('POST', `/api/v1/api-keys/${plain.id}/rotate`, {})).status, 200);
    assert.equal((await alice.send('POST', `/api/v1/api-keys/${admin.id}/revoke`)).status, 200);
  });

  test('of one caller waits at most a hundred times', async (t) => {
    const { server, alice, bob } = await careful(t);
    for (let count = 0; count < 100; count += 1) {
      const person = { name: `person-${count}`, password: goodPassword };
      assert.equal((await alice.send('POST', '/api/v1/administrators', person)).status, 403);
    }
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'rate_limited');
    assert.equal(await codeOf(await bob.send('DELETE', certificate)), 'approval_required');
    server.world.advance(day);
    assert.equal(await codeOf(await alice.send('DELETE', certificate)), 'approval_required');
  });
});

test('a change succeeds immediately where the settings do not ask for a second administrator', async (t) => {
  const { alice, changes } = await careful(t, false);
  assert.equal((await alice.send('DELETE', certificate)).status, 204);
  assert.deepEqual(await changes(), []);
});
