/**
 * Rotating an API key over HTTP: the new secret shown once, the old one valid until its overlap ends, all of it
 * recorded.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { type Administration, administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/api-keys';

type Key = {
  readonly id: number;
  readonly key: string;
  readonly prefix: string;
  readonly previous_prefix: string | null;
  readonly previous_expires_at: string | null;
};

async function prepared(t: Parameters<typeof administration>[0]) {
  const admin = await administration(t);
  await makeCertificate(admin.server.vault, 'www');
  const made = await makeKey(admin.server.vault);
  return { ...admin, ...made, prefix: made.raw.slice(0, 15) };
}

const statusFor = async ({ server }: Pick<Administration, 'server'>, raw: string) =>
  (await server.get('/api/v1/certificates/www', raw)).status;

const rotated = (admin: Administration, id: number, body: object = {}) =>
  admin.expect<Key>(200, 'POST', `${path}/${id}/rotate`, body);

suite('rotating an API key', () => {
  test('rejects invalid overlaps and unknown, expired and revoked keys, and changes nothing', async (t) => {
    const admin = await prepared(t);
    const { server, expect, id, raw } = admin;
    for (const overlap of ['', '7', '-1d', '2y', '366d', 'forever', 7, null]) {
      const { errors } = await expect<{ errors: { path: string }[] }>(400, 'POST', `${path}/${id}/rotate`, {
        overlap,
      });
      assert.equal(errors[0]?.path, 'overlap', JSON.stringify(overlap));
    }
    await expect(400, 'POST', `${path}/${id}/rotate`, { until: '7d' });
    for (const unknown of [99, 0, 'x']) await expect(404, 'POST', `${path}/${unknown}/rotate`, {});
    const expires_at = new Date(server.world.now() + 1000).toISOString();
    const expired = await makeKey(server.vault, { name: 'expired', expires_at });
    server.world.advance(1000);
    const revoked = await makeKey(server.vault, { name: 'revoked' });
    await expect(200, 'POST', `${path}/${revoked.id}/revoke`);
    for (const key of [expired, revoked]) {
      const { code } = await expect(409, 'POST', `${path}/${key.id}/rotate`, {});
      assert.equal(code, 'api_key_inactive');
    }
    assert.equal(await statusFor(admin, raw), 200);
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.rotate'), []);
  });

  test('requires an administrator', async (t) => {
    const { server, id, raw } = await prepared(t);
    const init = { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } };
    assert.equal((await server.get(`${path}/${id}/rotate`, raw, init)).status, 403);
    assert.equal((await server.get(`${path}/${id}/rotate`, undefined, init)).status, 403);
  });
});

suite('a rotated key', () => {
  test('has a new secret, shown once, and accepts the old one for seven days', async (t) => {
    const admin = await prepared(t);
    const { server, ask, id, raw, prefix } = admin;
    assert.equal(await statusFor(admin, raw), 200);
    const told = await ask('POST', `${path}/${id}/rotate`, {});
    assert.deepEqual([told.status, told.headers.get('Cache-Control')], [200, 'no-store']);
    const { key, ...view } = told.json as Key;
    assert.match(key, /^vk_[\w-]{12}\.[\w-]{43}$/);
    assert.notEqual(key, raw);
    const until = '2026-11-28T12:00:00Z';
    assert.deepEqual(
      [view.id, view.prefix, view.previous_prefix, view.previous_expires_at],
      [id, key.slice(0, 15), prefix, until],
    );
    assert.deepEqual([await statusFor(admin, raw), await statusFor(admin, key)], [200, 200]);
    const [listed] = (await ask('GET', path)).json as Key[];
    assert.deepEqual([listed?.previous_prefix, listed?.previous_expires_at], [prefix, until]);
    const [event] = eventsOf(server.dataDir, 'api_key.rotate');
    assert.deepEqual([event?.actor, event?.resource], ['admin:alice', `api-key:${id}`]);
    assert.deepEqual(event?.detail, {
      name: 'web',
      prefix: view.prefix,
      previous_prefix: prefix,
      previous_expires_at: until,
    });
    const everywhere = outside(server.dataDir, (db) =>
      ['audit_events', 'api_keys'].map((table) => JSON.stringify(db.prepare(`select * from ${table}`).all())),
    ).join('');
    for (const text of [key, raw].map((one) => one.split('.')[1] ?? '')) {
      assert(!everywhere.includes(text) && !server.log.lines.join('\n').includes(text));
    }
    server.world.advance(7 * day - 1);
    assert.deepEqual([await statusFor(admin, raw), await statusFor(admin, key)], [200, 200]);
    server.world.advance(1);
    assert.deepEqual([await statusFor(admin, raw), await statusFor(admin, key)], [401, 200]);
    const [later] = (await ask('GET', path)).json as (Key & { state: string })[];
    assert.deepEqual(
      [later?.state, later?.previous_prefix, later?.previous_expires_at],
      ['active', null, null],
    );
    const [refusal] = eventsOf(server.dataDir, 'access.refuse');
    assert.deepEqual(
      [refusal?.actor, refusal?.detail],
      [`api-key:${id}:web`, { code: 'unauthenticated', reason: 'replaced' }],
      'the audit log says why',
    );
  });

  test('rejects the old secret immediately with an overlap of 0', async (t) => {
    const admin = await prepared(t);
    assert.equal(await statusFor(admin, admin.raw), 200);
    const { key, previous_prefix, previous_expires_at } = await rotated(admin, admin.id, { overlap: '0' });
    assert.deepEqual([previous_prefix, previous_expires_at], [null, null]);
    assert.deepEqual([await statusFor(admin, admin.raw), await statusFor(admin, key)], [401, 200]);
    const stored = outside(admin.server.dataDir, (db) =>
      db.prepare('select previous_prefix, previous_hash, previous_expires_at from api_keys').get(),
    );
    assert.deepEqual(
      { ...(stored as object) },
      {
        previous_prefix: null,
        previous_hash: null,
        previous_expires_at: null,
      },
    );
  });

  test('keeps the two newest secrets when rotated again, and the event lists the ended prefix', async (t) => {
    const admin = await prepared(t);
    const second = await rotated(admin, admin.id, { overlap: '24h' });
    const third = await rotated(admin, admin.id, { overlap: '1h' });
    const statuses = async () =>
      Promise.all([admin.raw, second.key, third.key].map((raw) => statusFor(admin, raw)));
    assert.deepEqual(await statuses(), [401, 200, 200]);
    const [, event] = eventsOf(admin.server.dataDir, 'api_key.rotate');
    assert.deepEqual(
      [event?.detail.previous_prefix, event?.detail.ended_prefix],
      [second.prefix, admin.prefix],
    );
    admin.server.world.advance(3_600_000);
    assert.deepEqual(await statuses(), [401, 401, 200], 'the newest overlap counts');
  });

  test('loses both secrets when it is revoked, and when it expires', async (t) => {
    const admin = await prepared(t);
    const { key } = await rotated(admin, admin.id);
    await admin.expect(200, 'POST', `${path}/${admin.id}/revoke`);
    assert.deepEqual([await statusFor(admin, admin.raw), await statusFor(admin, key)], [401, 401]);
    const [listed] = (await admin.ask('GET', path)).json as Key[];
    assert.equal(listed?.previous_expires_at, null);
    await admin.expect(204, 'DELETE', `${path}/${admin.id}`);
    assert.deepEqual([await statusFor(admin, admin.raw), await statusFor(admin, key)], [401, 401]);
    const expires_at = '2026-11-22T12:00:00Z';
    const short = await makeKey(admin.server.vault, { name: 'short', expires_at });
    const next = await rotated(admin, short.id);
    assert.equal(next.previous_expires_at, expires_at, 'no secret outlives its key');
    admin.server.world.advance(day);
    assert.deepEqual([await statusFor(admin, short.raw), await statusFor(admin, next.key)], [401, 401]);
  });

  test('is rejected if its previous secret is changed or inserted in the database', async (t) => {
    const admin = await prepared(t);
    const { key } = await rotated(admin, admin.id);
    const other = await makeKey(admin.server.vault, { name: 'other' });
    outside(admin.server.dataDir, (db) => {
      const later = 'update api_keys set previous_expires_at = previous_expires_at + 1000 where id = ?';
      assert.equal(db.prepare(later).run(admin.id).changes, 1);
    });
    assert.deepEqual([await statusFor(admin, admin.raw), await statusFor(admin, key)], [401, 401]);
    outside(admin.server.dataDir, (db) => {
      const sql =
        "update api_keys set previous_prefix = 'vk_aaaaaaaaaaaa', previous_hash = x'00' where id = ?";
      assert.equal(db.prepare(sql).run(other.id).changes, 1);
    });
    assert.equal(await statusFor(admin, other.raw), 401);
    await admin.expect(400, 'POST', `${path}/${admin.id}/rotate`, {});
  });
});
