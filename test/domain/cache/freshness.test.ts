/** Freshness: what is remembered is never older than the last look at the database. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import type { Database } from '../../../src/db/database.ts';
import { FreshCache, Freshness } from '../../../src/domain/cache/freshness.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { type TestVault, testVault } from '../../harness/test-vault.ts';

/** A change that caches have to notice, made by another process as far as the database can tell. */
function changeOutside({ dataDir }: TestVault): void {
  outside(dataDir, (db) =>
    db.exec(`insert into certificates (name, domains, key_type, auto_renew, reuse_key, created_at)
      values ('${randomUUID()}', '[]', 'x', 0, 0, 0)`),
  );
}

async function cache(t: Parameters<typeof testVault>[0], limit = 10) {
  const opened = await testVault(t);
  const { freshness } = opened.vault;
  await freshness.look();
  const values = new FreshCache<string, string>(freshness, limit);
  const loaded: string[] = [];
  const get = (key: string) =>
    values.get(key, async () => {
      loaded.push(key);
      return `${key}${loaded.length}`;
    });
  return { opened, freshness, values, loaded, get };
}

test('a value is loaded once and remembered while nothing changes', async (t) => {
  const { freshness, get, loaded } = await cache(t);
  assert.equal(await get('a'), 'a1');
  await freshness.look();
  assert.equal(await get('a'), 'a1');
  assert.deepEqual(loaded, ['a']);
});

test('a value is loaded again after another process changes the database', async (t) => {
  const { opened, freshness, get } = await cache(t);
  await get('a');
  changeOutside(opened);
  await freshness.look();
  assert.equal(await get('a'), 'a2');
});

test('a value whose load began before a change is not remembered', async (t) => {
  const { opened, freshness, values, get } = await cache(t);
  const gate = Promise.withResolvers<string>();
  const early = values.get('a', () => gate.promise);
  changeOutside(opened);
  await freshness.look();
  gate.resolve('old');
  assert.equal(await early, 'old');
  assert.equal(await get('a'), 'a1');
});

test('a missing value is not remembered', async (t) => {
  const { values, get } = await cache(t);
  assert.equal(await values.get('a', async () => undefined), undefined);
  assert.equal(await get('a'), 'a1');
});

test('a load that fails is not remembered', async (t) => {
  const { values, get } = await cache(t);
  await assert.rejects(
    values.get('a', async () => Promise.reject(new Error('no'))),
    /no/,
  );
  assert.equal(await get('a'), 'a1');
});

test('the cache keeps at most its limit of values and evicts the oldest first', async (t) => {
  const { get, loaded } = await cache(t, 3);
  for (const key of ['a', 'b', 'c', 'd', 'b', 'c', 'd']) await get(key);
  assert.deepEqual(loaded, ['a', 'b', 'c', 'd']);
  await get('a');
  assert.deepEqual(loaded, ['a', 'b', 'c', 'd', 'a']);
});

test('lookups of missing values evict nothing', async (t) => {
  const { values, get, loaded } = await cache(t, 3);
  for (const key of ['a', 'b', 'c']) await get(key);
  for (let n = 0; n < 100; n += 1) await values.get(`missing ${n}`, async () => undefined);
  for (const key of ['a', 'b', 'c']) await get(key);
  assert.deepEqual(loaded, ['a', 'b', 'c']);
});

test('every look rejects while the database cannot be read', async (t) => {
  const { vault } = await testVault(t);
  t.mock.method(vault.db, 'generation', () => Promise.reject(new Error('gone')));
  const freshness = new Freshness(vault.db satisfies Database, vault.world);
  await assert.rejects(freshness.look(), /gone/);
  await assert.rejects(freshness.look(), /gone/);
});
