/** The simulated disk: what survives a power cut, what may be lost, and that a seed repeats the same losses. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempDir } from '../harness/temp-dir.ts';
import { chanceFrom } from './chamber.ts';
import { Disk, type Loss, noLoss, someLoss } from './disk.ts';
import type { DiskRecord } from './disk-log.ts';

const everythingThatCan: Loss = { names: 'none', share: 0, sector: 512, unwritten: 'zeros' };

const create: DiskRecord = { type: 'create', path: 'a', inode: 1 };
const write = (text: string, offset = 0): DiskRecord => ({
  ...{ type: 'write', inode: 1, offset },
  data: Buffer.from(text),
});
const syncFile: DiskRecord = { type: 'sync', path: 'a', inode: 1 };
const syncFolder: DiskRecord = { type: 'sync', path: '', inode: 9 };

/** The operations, and the files with their contents after a cut that loses as much as possible; `null` for no file. */
const cases: readonly [title: string, records: DiskRecord[], left: Record<string, string | null>][] = [
  ['a file that was never synced is gone', [create, write('x')], { a: null }],
  ['a synced file is gone if its folder was not synced', [create, write('x'), syncFile], { a: null }],
  ['a file that was not synced itself is empty', [create, write('x'), syncFolder], { a: '' }],
  ['a synced file is kept', [create, write('x'), syncFile, syncFolder], { a: 'x' }],
  [
    'a write after the sync is gone',
    [create, write('x'), syncFile, syncFolder, write('y'), write('z', 1)],
    { a: 'x' },
  ],
  [
    'a truncation that was not synced is undone',
    [create, write('xyz'), syncFile, syncFolder, { type: 'truncate', inode: 1, size: 0 }],
    { a: 'xyz' },
  ],
  [
    'a new name is durable once its folder is synced',
    [create, write('x'), syncFile, { type: 'rename', from: 'a', to: 'b' }, syncFolder],
    { a: null, b: 'x' },
  ],
  [
    'a rename that was not synced is lost as a whole',
    [create, write('x'), syncFile, syncFolder, { type: 'rename', from: 'a', to: 'b' }],
    { a: 'x', b: null },
  ],
  [
    'a removed file comes back if its removal was not synced',
    [create, write('x'), syncFile, syncFolder, { type: 'unlink', path: 'a' }],
    { a: 'x' },
  ],
  [
    'a folder is gone with its contents if its parent was not synced',
    [
      { type: 'mkdir', path: 'd' },
      { type: 'create', path: 'd/a', inode: 1 },
      ...[write('x'), syncFile],
      { type: 'sync', path: 'd', inode: 8 },
    ],
    { d: null },
  ],
  [
    'a new file with the inode of a removed one is a different file',
    [create, write('x'), syncFile, syncFolder, { type: 'unlink', path: 'a' }, create, write('y'), syncFolder],
    { a: '' },
  ],
];

for (const [title, records, left] of cases) {
  test(title, (t) => {
    const target = join(tempDir(t), 'left');
    const disk = new Disk();
    for (const record of records) disk.apply(record);
    disk.cut(target, everythingThatCan, chanceFrom('any'));
    for (const [name, content] of Object.entries(left)) {
      const path = join(target, name);
      assert.equal(existsSync(path) ? readFileSync(path, 'utf8') : null, content, name);
    }
  });
}

test('non-durable writes may survive in part, and all survive if nothing is lost', (t) => {
  const dir = tempDir(t);
  const disk = new Disk();
  const size = 16 * 512;
  for (const record of [create, syncFolder, write('x'.repeat(size))]) disk.apply(record);
  const chance = chanceFrom('torn');
  const torn = Array.from({ length: 40 }, (_, index) => {
    const target = join(dir, String(index));
    disk.cut(target, someLoss(chance), chance);
    return readFileSync(join(target, 'a'), 'utf8').replaceAll(/[^x]/g, '').length / 512;
  });
  assert.ok(torn.every((sectors) => Number.isInteger(sectors)));
  assert.ok(torn.includes(0) && torn.includes(16) && new Set(torn).size > 4, torn.join());
  disk.cut(join(dir, 'whole'), noLoss, chance);
  assert.deepEqual(readdirSync(join(dir, 'whole')), ['a']);
  assert.equal(readFileSync(join(dir, 'whole', 'a'), 'utf8'), 'x'.repeat(size));
});

test('the same seed causes the same losses', () => {
  const losses = (seed: string) => {
    const chance = chanceFrom(seed);
    return Array.from({ length: 20 }, () => someLoss(chance));
  };
  assert.deepEqual(losses('one'), losses('one'));
  assert.notDeepEqual(losses('one'), losses('another'));
});
