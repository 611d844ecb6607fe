/**
 * Records that two renewals share, because the CA gave both the same authorization, stay until the last of them goes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { insertChallenge } from '../../../src/db/tables/issuance/acme-challenges.ts';
import { findDnsProvider } from '../../../src/db/tables/issuance/dns-providers.ts';
import { DnsProviderError, type TxtRecord } from '../../../src/dns/dns-provider.ts';
import {
  beginRemoval,
  removeChallenges,
  removeLeftoverChallenges,
} from '../../../src/domain/orders/challenge-removal.ts';
import { challengeRows, engine } from '../../harness/issuance/engine-vault.ts';

test('a record shared by two challenges is removed with the second challenge', async (t) => {
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

test('a record whose removal fails does not block the others, and is retried', async (t) => {
  const { vault, zone, log } = await engine(t, { zones: ['example.test'] });
  const provider = await findDnsProvider(vault.db.reader, 'memory');
  assert(provider);
  const names = Array.from({ length: 8 }, (_, index) => `_acme-challenge.n${index}.example.test`);
  const rows = await vault.db.write((writer) =>
    Promise.all(
      names.map((name) =>
        insertChallenge(writer, {
          ...{ renewal_id: null, identifier: name, type: 'dns-01', token: name, key_authorization: name },
          ...{ dns_provider_id: provider.id, record_name: name, record_zone: 'example.test' },
          ...{ record_value: 'value', created_at: vault.world.now() },
        }),
      ),
    ),
  );
  for (const name of names) zone.records.set(name, new Set(['value']));
  const { remove } = zone.provider;
  const failing = t.mock.method(zone.provider, 'remove', async (record: TxtRecord, signal: AbortSignal) => {
    if (record.name === names[2]) throw new Error('not this one');
    await remove(record, signal);
  });
  await removeChallenges(vault, rows);
  assert.deepEqual([...zone.records.keys()], [names[2]]);
  assert.deepEqual(
    (await challengeRows(vault)).map((row) => row.record_name),
    [names[2]],
  );
  assert(log.lines.some((line) => line.includes('not this one') && line.includes('"memory"')));
  failing.mock.restore();
  assert.equal(await removeLeftoverChallenges(vault), 1);
  assert.deepEqual([...zone.records], []);
});

test('removals are interrupted when the process stops, and the challenges stay for the next one', async (t) => {
  const { vault, zone } = await engine(t, { zones: ['example.test'] });
  const provider = await findDnsProvider(vault.db.reader, 'memory');
  const name = '_acme-challenge.www.example.test';
  const row = await vault.db.write((writer) =>
    insertChallenge(writer, {
      ...{ renewal_id: null, identifier: name, type: 'dns-01', token: name, key_authorization: name },
      ...{ dns_provider_id: provider?.id ?? null, record_name: name, record_zone: 'example.test' },
      ...{ record_value: 'value', created_at: vault.world.now() },
    }),
  );
  const begun = Promise.withResolvers<void>();
  t.mock.method(zone.provider, 'remove', async (_: TxtRecord, signal: AbortSignal) => {
    begun.resolve();
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    throw new DnsProviderError('the request was canceled');
  });
  beginRemoval(vault, [row]);
  await begun.promise;
  await vault.removals.end();
  assert.equal((await challengeRows(vault)).length, 1);
});
