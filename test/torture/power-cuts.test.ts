/** The chamber of power cuts in its short form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../harness/missing-program.ts';
import { cutPower } from './power-cuts.ts';
import { shortOrder } from './short-order.ts';

test(
  'whenever the power is cut, and whatever is lost that was not durable, no answer becomes untrue',
  needs('cc'),
  async (t) => {
    const options = { cuts: 10, runs: 1, seconds: 1, clients: 4 };
    const findings = await cutPower(shortOrder(t), options);
    const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
    assert.equal(of('power cuts'), 10);
    assert.ok(of('answers') >= 10 && of('comparisons') > 200, JSON.stringify(findings));
  },
);
