/**
 * The short form of the faults of single files: what a server touches is found, and a few faults, others in each
 * commit.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { slice } from '../harness/slice.ts';
import { cellsOf, FileScene } from './file-faults.ts';
import { shortOrder } from './short-order.ts';

/** In each commit. */
const cells = 4;

test(
  'a file that fails, hangs or is slow while the server runs costs no download, and the server recovers',
  needs('cc'),
  async (t) => {
    const scene = new FileScene(shortOrder(t), {
      faultMs: 1000,
      promptMs: Number.POSITIVE_INFINITY,
      recoveryMs: 60_000,
    });
    await scene.make();
    const rows = await scene.learn();
    const all = cellsOf(rows);
    for (let n = 0; n < cells; n += 1) {
      const cell = all[(slice * cells + n * Math.ceil(all.length / cells)) % all.length];
      assert(cell);
      const outcome = await scene.endure(cell.row, cell.kind);
      t.diagnostic(`${cell.row.pattern} ${cell.row.operation} ${cell.kind}: ${JSON.stringify(outcome)}`);
    }
  },
);
