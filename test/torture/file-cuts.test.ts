/** The chamber of power cuts around files in its short form: the moments that are hard, and those alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../harness/missing-program.ts';
import { cutFiles } from './file-cuts.ts';
import { shortOrder } from './short-order.ts';

test(
  'when the power is cut right after a first start, a backup, a restore or a migration, it is done and whole',
  needs('cc'),
  async (t) => {
    const findings = await cutFiles(shortOrder(t), { cuts: 0 });
    const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
    assert.equal(of('steps'), 8);
    assert.ok(of('power cuts') >= 12, JSON.stringify(findings));
  },
);
