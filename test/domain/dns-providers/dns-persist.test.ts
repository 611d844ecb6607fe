/** dns-persist-01: the record is shown until a person has made it, checked, and never touched. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { challengeRows, engine, workOn } from '../../harness/issuance/engine-vault.ts';

const options = {
  challengeTypes: ['dns-persist-01'],
  zones: ['example.test'],
  certificate: { domains: ['www.example.test', '*.example.test'], challenge: 'dns-persist-01' },
};

test('the error prints the missing record with the value from the CA, and no record is written', async (t) => {
  const { vault, ca, zone } = await engine(t, options);
  const ended = await workOn({ ...vault, allowsDrafts: true });
  assert.equal(ended.status, 'failed');
  const value = `ca.example; accounturi=${ca.origin}/account/persist`;
  assert.equal(
    ended.error,
    `missing record: _validation-persist.www.example.test TXT "${value}". ` +
      'Create it once; later renewals use the same record.',
  );
  assert.deepEqual(zone.done, []);
  assert.deepEqual(await challengeRows(vault), []);
});

test('existing records validate this and later renewals, in any formatting, and are kept', async (t) => {
  const { vault, ca, zone } = await engine(t, options);
  const uri = `accounturi=${ca.origin}/account/persist`;
  zone.records.set('_validation-persist.www.example.test', new Set(['something else', `CA.example;${uri}`]));
  zone.records.set('_validation-persist.example.test', new Set([`ca.example; policy=wildcard;  ${uri};`]));
  const before = structuredClone(zone.records);
  for (const _ of [1, 2]) {
    const ended = await workOn({ ...vault, allowsDrafts: true });
    assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
    await requestRenewal(vault, localCli, 'www');
  }
  assert.deepEqual(zone.records, before);
  assert.deepEqual(zone.done, []);
});

test('a record for another account, another CA, or without policy=wildcard does not validate a wildcard', async (t) => {
  for (const wrong of [
    'ca.example; accounturi=https://ca.example/account/9; policy=wildcard',
    'other.example; accounturi=ACCOUNT; policy=wildcard',
    'ca.example; accounturi=ACCOUNT',
  ]) {
    const { vault, ca, zone } = await engine(t, {
      ...options,
      certificate: { ...options.certificate, domains: ['*.example.test'] },
    });
    const value = wrong.replace('ACCOUNT', `${ca.origin}/account/persist`);
    zone.records.set('_validation-persist.example.test', new Set([value]));
    const ended = await workOn({ ...vault, allowsDrafts: true });
    assert.match(ended.error ?? '', /policy=wildcard"\./, wrong);
  }
});

const apex = { ...options, certificate: { ...options.certificate, domains: ['example.test'] } };

for (const [what, record] of [
  ['a wildcard record for the domain itself', 'ca.example; accounturi=ACCOUNT; policy=wildcard'],
  ['a record that specifies the second name of the CA', 'also.example; accounturi=ACCOUNT'],
  ['a record with a later persistUntil', 'ca.example; accounturi=ACCOUNT; persistUntil=LATER'],
  ['a record with unknown parameters', 'ca.example; accounturi=ACCOUNT; new=thing; flag'],
] as const) {
  test(`validation succeeds with ${what}`, async (t) => {
    const { vault, world, ca, zone } = await engine(t, apex);
    const later = String(Math.floor(world.now() / 1000) + 86_400);
    const value = record.replace('ACCOUNT', `${ca.origin}/account/persist`).replace('LATER', later);
    zone.records.set('_validation-persist.example.test', new Set([value]));
    const ended = await workOn({ ...vault, allowsDrafts: true });
    assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  });
}

for (const until of ['1764000000', 'soon', '-1']) {
  test(`a record with persistUntil=${until} is rejected as expired`, async (t) => {
    const { vault, ca, zone } = await engine(t, apex);
    const value = `ca.example; accounturi=${ca.origin}/account/persist`;
    zone.records.set('_validation-persist.example.test', new Set([`${value}; persistUntil=${until}`]));
    const ended = await workOn({ ...vault, allowsDrafts: true });
    assert.equal(
      ended.error,
      `the record _validation-persist.example.test TXT has expired: persistUntil=${until}. ` +
        `Replace it with "${value}", with a later persistUntil or none.`,
    );
  });
}

test('dns-persist-01 is rejected without --acme-drafts, with a hint at the flag', async (t) => {
  const { work } = await engine(t, options);
  assert.match((await work()).error ?? '', /^dns-persist-01 is still a draft\. Allow it with --acme-drafts/);
});
