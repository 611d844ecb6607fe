/** Records for a CA: put up where they belong, seen before the CA is told, and taken down whatever happens. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour, minute } from '../../../src/base/duration.ts';
import { Secret } from '../../../src/base/secret.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addDnsProvider, removeDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import { stepsOf } from '../../../src/domain/renewals/attempt.ts';
import { http01At, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { Refusal } from '../../harness/ca/scripted-acme-jws.ts';
import { testServer } from '../../harness/http/test-server.ts';
import { lookingEngine } from '../../harness/issuance/engine-dns.ts';
import {
  addMemoryProvider,
  challengeRows,
  type Engine,
  engine,
  hastyWorld,
  tryWork,
  workOn,
} from '../../harness/issuance/engine-vault.ts';
import { workerOn } from '../../harness/issuance/engine-worker.ts';
import { acmeIssuer, makeCertificate, rowOf } from '../../harness/issuance/renewal-fixtures.ts';

async function succeeds({ work, vault, zone }: Engine) {
  const ended = await work();
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  assert.deepEqual([...zone.records], []);
  assert.deepEqual(await challengeRows(vault), []);
  return ended;
}

test('an apex and its wildcard are validated by two values at one name', async (t) => {
  const opened = await lookingEngine(t, { certificate: { domains: ['example.test', '*.example.test'] } });
  const ended = await succeeds(opened);
  const name = '_acme-challenge.example.test';
  assert.deepEqual(opened.sights, [
    [name, 2],
    [name, 2],
  ]);
  const texts = stepsOf(ended).map(({ text }) => text);
  assert(texts.includes(`presenting ${name} through memory`));
  assert(texts.includes(`waiting for ${name} to become visible`));
});

test('CNAMEs are followed, and the provider with the longest matching zone presents the record', async (t) => {
  const opened = await lookingEngine(t, { certificate: { domains: ['www.customer.test'] }, zones: ['test'] });
  const { vault, zone } = opened;
  zone.aliases.set('_acme-challenge.www.customer.test', 'www.acme.example.test');
  await addMemoryProvider(vault, zone, 'longer', 'acme.example.test', 'example.test');
  const ended = await succeeds(opened);
  assert.deepEqual(opened.sights, [['www.acme.example.test', 1]]);
  assert(stepsOf(ended).some(({ text }) => text === 'presenting www.acme.example.test through longer'));
});

test('http-01 challenges are served during the renewal, and return 404 after it', async (t) => {
  const world = hastyWorld();
  const { vault, url } = await testServer(t, { world });
  const { port } = new URL(url);
  const tokens: string[] = [];
  const look = http01At(Number(port));
  const ca = await scriptedAcme(t, {
    now: world.now,
    validate: (validation) => {
      tokens.push(validation.token ?? '');
      return look(validation);
    },
  });
  await acmeIssuer(vault, 'ca', ca.directoryUrl);
  await makeCertificate(vault, 'www', { issuer: 'ca', domains: ['a.test', 'b.test', '192.0.2.7'] });
  const ended = await workOn(vault);
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  assert.equal(tokens.length, 3);
  for (const token of tokens) {
    const { status } = await fetch(`${url}/.well-known/acme-challenge/${token}`);
    assert.equal(status, 404);
  }
});

test("a name whose validation fails makes the renewal fail with the CA's message, and the records are removed", async (t) => {
  const opened = await engine(t, {
    zones: ['example.test'],
    validate: () => new Refusal('caa', 'CAA forbids it'),
  });
  const { vault, zone, work } = opened;
  const ended = await work();
  assert.deepEqual([ended.status, ended.error], ['failed', 'www.example.test: CAA forbids it']);
  assert.deepEqual([...zone.records], []);
  assert.deepEqual(await challengeRows(vault), []);
});

test('a DNS provider removed at any operation of an order leaves no challenge, and a failure is retried', async (t) => {
  for (let number = 2, isOver = false; !isOver; number += 1) {
    const opened = await lookingEngine(t);
    const { vault, zone, world } = opened;
    const worker = await workerOn(vault, zone, async (at) => {
      if (at.number === number && at.moment === 'before') await removeDnsProvider(vault, localCli, 'memory');
    });
    const ended = await workOn(worker.vault);
    isOver = worker.operations.length < number;
    assert.deepEqual(await challengeRows(vault), []);
    if (ended.status === 'succeeded') continue;
    assert.doesNotMatch(ended.error ?? '', /log/, `operation ${number}, ${worker.operations[number - 1]}`);
    // The next attempt does it by http-01, which this CA does not look at.
    assert.equal((await rowOf(vault, 'www')).next_renewal_at, world.now() + minute);
  }
});

test('concurrent renewals of three certificates for the same name all succeed and leave no record', async (t) => {
  const opened = await lookingEngine(t, { certificate: null });
  const { vault } = opened;
  for (const name of ['one', 'two', 'three']) {
    await makeCertificate(vault, name, { issuer: 'ca', domains: ['www.example.test'] });
  }
  const ended = await Promise.all(['one', 'two', 'three'].map(() => tryWork(vault)));
  assert.deepEqual(
    ended.map((row) => [row?.status, row?.error]),
    [1, 2, 3].map(() => ['succeeded', null]),
  );
  assert.deepEqual([...opened.zone.records], []);
});

test('a worker that lost its lease leaves its records to the next worker', async (t) => {
  const opened = await lookingEngine(t);
  const { vault, zone } = opened;
  const overtaken = await workerOn(vault, zone, async ({ what, moment }) => {
    if (!what.startsWith('present') || moment !== 'after') return;
    const changes = { lease_owner: 'another', lease_expires_at: 0 };
    await vault.db.write((writer) => writer.updateTable('renewals').set(changes).execute());
  });
  await tryWork(overtaken.vault);
  assert.equal(zone.records.size, 1);
  assert.equal((await challengeRows(vault)).length, 1);
  assert.equal((await rowOf(vault, 'www')).failed_attempts, 0);
  const next = await workerOn(vault, zone);
  const ended = await workOn(next.vault);
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  assert.deepEqual([...zone.records], []);
  assert.deepEqual(await challengeRows(vault), []);
});

test('a manual DNS record can be created 23 hours later, beyond the one-hour attempt timeout', async (t) => {
  const opened = await engine(t, { certificate: null });
  const { vault, world, zone } = opened;
  const input = parseInput(createDnsProviderInput, { name: 'me', type: 'manual', zones: ['example.test'] });
  await addDnsProvider(vault, localCli, input, new Secret(Buffer.from('{}')));
  await makeCertificate(vault, 'www', { issuer: 'ca' });
  const begun = world.now();
  let wanted = '';
  t.mock.method(zone.resolver, 'txt', async () => {
    wanted ||= (await challengeRows(vault))[0]?.record_value ?? '';
    return world.now() - begun > 23 * hour ? [wanted] : [];
  });
  const ended = await workOn(vault);
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  assert(world.now() - begun > 23 * hour);
});
