/**
 * The short form of the chamber of failing starts: six faults in each commit, and a disk that starts to fail during a
 * start.
 */

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { fromExecutable } from '../harness/processes/vault-process.ts';
import { inTurn } from '../harness/slice.ts';
import type { DiskFault } from './disk-shim.ts';
import { shortOrder } from './short-order.ts';
import { StartScene, situations, startTroubles } from './start-faults.ts';

/** The allowed results of each fault; by default the start must fail. */
const served = /may be open|write lock|durable|names/;

suite(
  'a start with a fault serves correctly or fails with one error message, and the next start works',
  needs('cc'),
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'vault-starts-'));
    let scene: StartScene;
    before(async () => {
      scene = await StartScene.open({ program: fromExecutable[0], folder });
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    for (const trouble of inTurn(startTroubles, 6)) {
      // Each with one of the possible vaults; the chamber runs all of them.
      test(trouble.title, async (t) => {
        const { chance } = shortOrder(t);
        const situation = chance.one(situations.slice(trouble.needsVault ? 1 : 0));
        t.diagnostic(situation);
        const tried = await scene.endure(situation, trouble);
        if (!served.test(trouble.title)) assert.equal(tried, 'refused');
      });
    }

    test('a disk that fails to read at any point of a creation leaves no partial database', async () => {
      const reads = Array.from({ length: 20 }, (_, index) => 10 + index);
      for (const skip of inTurn(reads, 5)) {
        const fault: DiskFault = { operation: 'read', error: 'EIO', pattern: '*', skip };
        await scene.endure('nothing', { title: 'a fault', faults: [fault] });
      }
    });

    test('a start that cannot remove the last files of a creation fails with that error', async () => {
      const fault: DiskFault = { operation: 'name', error: 'EIO', pattern: '*', skip: 11 };
      const tried = await scene.endure('nothing', { title: 'a fault', faults: [fault] });
      assert.equal(tried, 'refused');
      const sentences = [...scene.sentences.keys()].join('\n');
      assert.match(sentences, /cannot remove \S+vault\.creating: input\/output error/);
    });

    for (const situation of inTurn(situations, 2)) {
      test(`the disk fails while it starts on ${situation}`, async (t) => {
        const { chance } = shortOrder(t);
        const operation = chance.one(['change', 'sync', 'read', 'open'] as const);
        const fault: DiskFault = { operation, error: 'EIO', pattern: '*', skip: chance.whole(0, 30) };
        t.diagnostic(JSON.stringify(fault));
        await scene.endure(situation, { title: 'a fault', faults: [fault] });
      });
    }
  },
);
