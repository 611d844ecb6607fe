/** The short form of the chamber of power cuts around files: only the critical moments. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { cutFiles } from './file-cuts.ts';
import { shortOrder } from './short-order.ts';

test(
  'a first start, a backup, a restore and a migration are complete after a power cut',
  needs('cc'),
  async (t) => {
    const findings = await cutFiles(shortOrder(t), { cuts: 0 });
    const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
    assert.equal(of('steps'), 8);
    assert.ok(of('power cuts') >= 12, JSON.stringify(findings));
  },
);
