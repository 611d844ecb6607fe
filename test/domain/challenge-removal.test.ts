/** Records that two renewals share, because the CA gave both the same authorization, stay until the last of them goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertChallenge } from '../../src/db/acme-challenges.ts';
import { findDnsProvider } from '../../src/db/dns-providers.ts';
import { removeChallenges } from '../../src/domain/challenge-removal.ts';
import { challengeRows, engine } from '../harness/engine-vault.ts';

test('a record that two need is taken down by the second', async (t) => {
  const { vault, zone } = await engine(t, { zones: ['example.test'] });
  const provider = await findDnsProvider(vault.db.reader, 'memory');
  const name = '_acme-challenge.www.example.test';
  const row = {
    renewal_id: null,
    identifier: 'www.example.test',
    type: 'dns-01',
    token: 'token',
    key_authorization: 'token.thumbprint',
    dns_provider_id: provider?.id ?? null,
    record_name: name,
    record_zone: 'example.test',
    record_value: 'value',
    created_at: vault.world.now(),
  };
  const [one, other, different] = await vault.db.write(async (writer) => [
    await insertChallenge(writer, row),
    await insertChallenge(writer, row),
    await insertChallenge(writer, { ...row, record_value: 'another value' }),
  ]);
  assert(one && other && different);
  zone.records.set(name, new Set(['value', 'another value']));
  await removeChallenges(vault, [one]);
  assert.deepEqual([...(zone.records.get(name) ?? [])], ['value', 'another value']);
  await removeChallenges(vault, [other]);
  assert.deepEqual([...(zone.records.get(name) ?? [])], ['another value']);
  await removeChallenges(vault, [different]);
  assert.deepEqual([...zone.records], []);
  assert.deepEqual(await challengeRows(vault), []);
});
