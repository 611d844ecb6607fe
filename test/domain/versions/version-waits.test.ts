/** Waits for new versions in one process: how many there may be, in which order they end, and what a look costs. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type VersionWait, VersionWaits, type WaitEnd } from '../../../src/domain/versions/version-waits.ts';
import { makeCertificate, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A vault with the certificates `www` and `other`, and waits that note how they ended. */
async function prepared(t: TestContext, most?: number) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  for (const name of ['www', 'other']) await makeCertificate(vault, name);
  await vault.freshness.look();
  const waits = new VersionWaits(vault, most);
  t.after(() => waits.stop());
  const ended: [string, WaitEnd][] = [];
  const waitOf = (id: string, options: Partial<VersionWait> = {}): VersionWait => ({
    name: 'www',
    version: 1,
    holder: 'api-key:1:one',
    until: world.elapsed() + 60_000,
    generation: vault.freshness.generation,
    end: (why) => ended.push([id, why]),
    ...options,
  });
  const look = async () => {
    world.advance(1000);
    await world.sleeping(1);
  };
  return { ...opened, waits, ended, waitOf, look };
}

test('waits are refused beyond their number, and admitted again when others end', async (t) => {
  const { waits, waitOf } = await prepared(t, 4);
  const all = ['a', 'b', 'c', 'd', 'e'].map((id) => waitOf(id, { holder: id }));
  assert.deepEqual(
    all.map((wait) => waits.begin(wait)),
    [true, true, true, true, false],
  );
  const [first, , , , last] = all;
  assert(first && last);
  waits.release(first);
  // A second release must not free a second place.
  waits.release(first);
  assert.deepEqual([waits.begin(last), waits.begin(first), waits.size], [true, false, 4]);
});

test('waits of one caller take at most half of the places, and have them again when they end', async (t) => {
  const { waits, waitOf, ended, world } = await prepared(t, 4);
  const [one, two, three] = ['1', '2', '3'].map((id) => waitOf(id));
  assert(one && two && three);
  assert.deepEqual([waits.begin(one), waits.begin(two), waits.begin(three)], [true, true, false]);
  assert(waits.begin(waitOf('other', { holder: 'api-key:2:other', until: world.elapsed() + 90_000 })));
  waits.release(one);
  assert(waits.begin(three));
  world.advance(60_000);
  await world.sleeping(1);
  assert.deepEqual(ended, [
    ['2', 'over'],
    ['3', 'over'],
  ]);
  assert.deepEqual([waits.begin(one), waits.begin(two), waits.begin(three)], [true, true, false]);
});

test('at most 10,000 waits exist, however many connections the process can keep', async (t) => {
  const { waits, waitOf } = await prepared(t, 1_000_000);
  const begun = Array.from({ length: 10_001 }, (_, index) =>
    waits.begin(waitOf(`${index}`, { holder: `${index % 3}` })),
  );
  assert.deepEqual([begun.lastIndexOf(true), waits.size], [9999, 10_000]);
});

test('one timer serves all waits, and none is left without them', async (t) => {
  const { waits, waitOf, world } = await prepared(t);
  const all = Array.from({ length: 100 }, (_, index) => waitOf(`${index}`));
  for (const wait of all) assert(waits.begin(wait));
  assert.equal(world.asleep, 1);
  for (const wait of all) waits.release(wait);
  await world.turn();
  assert.equal(world.asleep, 0);
  const again = waitOf('again');
  assert(waits.begin(again));
  assert.equal(world.asleep, 1);
});

test('a look reads the versions only after a change, and those of many certificates in one query', async (t) => {
  const { vault, waits, waitOf, look, ended, world } = await prepared(t);
  const looks = t.mock.method(vault.db, 'generation');
  let reads = 0;
  const reader = vault.db.reader.withPlugin({
    transformQuery: ({ node }) => {
      reads += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  Object.assign(vault.db, { reader });
  for (const name of ['www', 'other'])
    for (const id of ['1', '2', '3']) assert(waits.begin(waitOf(`${name} ${id}`, { name })));
  await look();
  await look();
  assert.deepEqual([looks.mock.callCount(), reads, ended.length], [2, 0, 0]);
  await makeKey(vault, { name: 'a change' });
  reads = 0;
  world.advance(1000);
  while (waits.size > 0) await world.turn();
  assert.deepEqual([reads, ended.length], [1, 6]);
});

test('waits for a new version end before those whose rights are only checked', async (t) => {
  const { vault, waits, waitOf, ended, world } = await prepared(t);
  for (let index = 0; index < 1500; index += 1)
    assert(waits.begin(waitOf(`other ${index}`, { name: 'other', holder: `${index % 2}` })));
  for (const id of ['1', '2']) assert(waits.begin(waitOf(id)));
  await renewCertificate(vault, 'www');
  world.advance(1000);
  await world.sleeping(1);
  assert.deepEqual(ended.slice(0, 3), [
    ['1', 'look'],
    ['2', 'look'],
    ['other 0', 'look'],
  ]);
  assert.deepEqual([ended.length, waits.size, ended.at(-1)?.[0]], [1002, 500, 'other 999']);
  world.advance(1000);
  while (waits.size > 0) await world.turn();
  assert.equal(ended.at(-1)?.[0], 'other 1499');
});

test('a wait ends if its certificate is gone or has another version since the request', async (t) => {
  const { vault, waits, waitOf, ended, world } = await prepared(t);
  assert(waits.begin(waitOf('gone', { name: 'absent' })));
  assert(waits.begin(waitOf('newer', { version: 2 })));
  await makeKey(vault, { name: 'a change' });
  world.advance(1000);
  while (waits.size > 0) await world.turn();
  assert.deepEqual(ended, [
    ['gone', 'look'],
    ['newer', 'look'],
  ]);
});

test('waits go on when the database fails, end when their time is over, and find versions after it', async (t) => {
  const { vault, waits, waitOf, look, ended, log, world } = await prepared(t);
  const failing = t.mock.method(vault.db, 'generation', () => Promise.reject(new Error('no connection')));
  assert(waits.begin(waitOf('brief', { until: world.elapsed() + 2000 })));
  assert(waits.begin(waitOf('long')));
  await look();
  assert.deepEqual(ended, []);
  await look();
  assert.deepEqual(ended, [['brief', 'over']]);
  assert.equal(log.lines.filter((line) => line.includes('failed to look for new versions')).length, 2);
  failing.mock.restore();
  await renewCertificate(vault, 'www');
  world.advance(1000);
  while (waits.size > 0) await world.turn();
  assert.deepEqual(ended[1], ['long', 'look']);
});

test('a stop ends all waits, and no other begins after it', async (t) => {
  const { waits, waitOf, ended, world } = await prepared(t);
  for (const id of ['1', '2']) assert(waits.begin(waitOf(id)));
  waits.stop();
  waits.stop();
  assert.deepEqual(ended, [
    ['1', 'stopping'],
    ['2', 'stopping'],
  ]);
  assert(!waits.begin(waitOf('3')));
  await world.turn();
  assert.equal(world.asleep, 0);
});

test('10,000 waits that end together leave turns of the event loop to others', async (t) => {
  const { waits, waitOf, ended, world } = await prepared(t);
  for (let index = 0; index < 10_000; index += 1)
    assert(waits.begin(waitOf(`${index}`, { holder: `${index % 2}` })));
  const perTurn: number[] = [];
  world.advance(60_000);
  for (let before = 0; waits.size > 0; before = ended.length) {
    await world.turn();
    perTurn.push(ended.length - before);
  }
  assert(Math.max(...perTurn) <= 100, `${Math.max(...perTurn)} ended in a turn`);
  assert.equal(ended.length, 10_000);
});
