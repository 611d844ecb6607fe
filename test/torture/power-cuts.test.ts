/** The short form of the chamber of power cuts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { needs } from '../harness/processes/missing-program.ts';
import { cutPower } from './power-cuts.ts';
import { shortOrder } from './short-order.ts';

test(
  'every response still holds after a power cut at any moment with any loss of non-durable data',
  needs('cc'),
  async (t) => {
    const options = { cuts: 10, runs: 1, seconds: 1, clients: 4 };
    const findings = await cutPower(shortOrder(t), options);
    const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
    assert.equal(of('power cuts'), 10);
    assert.ok(of('answers') >= 10 && of('comparisons') > 200, JSON.stringify(findings));
  },
);
