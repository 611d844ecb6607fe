/** By hand: the log says what to create and what may go, and nothing else happens. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogFields } from '../../../src/base/log.ts';
import { silentLog } from '../../../src/base/log.ts';
import { manual } from '../../../src/dns/providers/manual.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';

test('present logs the record as a warning, and remove logs it as info', async () => {
  const said: [string, LogFields][] = [];
  const log = {
    ...silentLog,
    warn: (fields: LogFields) => said.push(['warn', fields]),
    info: (fields: LogFields) => said.push(['info', fields]),
  };
  const provider = manual.create({}, { ...fakeContext(), log });
  const record = { name: '_acme-challenge.a.test', value: 'v', zone: 'a.test', domain: 'a.test' };
  assert.equal(provider.byHand, true);
  await provider.present(record, AbortSignal.any([]));
  await provider.remove(record, AbortSignal.any([]));
  const fields = { name: '_acme-challenge.a.test', type: 'TXT', value: 'v' };
  assert.deepEqual(said, [
    ['warn', fields],
    ['info', fields],
  ]);
});

test('manual accepts only empty settings', () => {
  assert(manual.config.safeParse({}).success);
  assert(!manual.config.safeParse({ token: 'x' }).success);
});
