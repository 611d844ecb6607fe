/** The short form of the chamber of lost files. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lose } from './lost-files.ts';
import { shortOrder } from './short-order.ts';

test('no certificate is lost when the database is moved away, emptied or copied alone', async (t) => {
  const findings = await lose(shortOrder(t), { rounds: 1 });
  const of = (name: string) => findings.find((finding) => finding.name === name)?.value ?? 0;
  assert.equal(of('files lost, emptied or copied alone'), 12);
  assert.ok(of('certificates, all there') >= 13, JSON.stringify(findings));
});
