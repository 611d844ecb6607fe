/** A DNS provider that is changed in place: what was opened of it is opened again, and its credentials stay sealed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  dnsProviderSecret,
  storeDnsProviderChange,
} from '../../../src/domain/dns-providers/dns-provider-change.ts';
import { addDnsProvider, requireDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { isByHand } from '../../../src/domain/dns-providers/dns-records.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import { testVault } from '../../harness/test-vault.ts';

const secretOf = (text: string) => new Secret(Buffer.from(text));

test('a changed provider keeps its id, is reopened, and its audit event omits the secret', async (t) => {
  const { vault } = await testVault(t);
  const before = { name: 'one', type: 'cloudflare', zones: ['a.test'] };
  await addDnsProvider(
    vault,
    localCli,
    parseInput(createDnsProviderInput, before),
    secretOf('api_token: made-up-token-of-this-test-000000000000'),
  );
  const old = await requireDnsProvider(vault.db.reader, 'one');
  assert.equal(await isByHand(vault, old), false);
  const after = parseInput(createDnsProviderInput, {
    name: 'one',
    type: 'manual',
    zones: ['b.test', 'c.test'],
  });
  const secret = secretOf('{}');
  await vault.db.write((writer) =>
    storeDnsProviderChange(vault, writer, localCli, after, { secret, isOther: true }),
  );
  const row = await requireDnsProvider(vault.db.reader, 'one');
  assert.deepEqual([row.id, row.type, row.zones], [old.id, 'manual', '["b.test","c.test"]']);
  assert.equal(dnsProviderSecret(vault, row).expose().toString(), '{}');
  assert.equal(await isByHand(vault, row), true);
  const query = vault.db.reader.selectFrom('audit_events').selectAll();
  const event = await query.where('action', '=', 'dns_provider.update').executeTakeFirstOrThrow();
  assert.deepEqual([event.actor, event.resource], ['local-cli', 'dns-provider:one']);
  assert.deepEqual(JSON.parse(event.detail), {
    type: 'manual',
    zones: ['b.test', 'c.test'],
    secret: 'replaced',
  });
});

test('changing an unknown provider fails without an audit event', async (t) => {
  const { vault } = await testVault(t);
  const input = parseInput(createDnsProviderInput, { name: 'none', type: 'manual', zones: ['a.test'] });
  await assert.rejects(
    vault.db.write((writer) =>
      storeDnsProviderChange(vault, writer, localCli, input, { secret: secretOf('{}'), isOther: false }),
    ),
    /unknown DNS provider "none"/,
  );
  const query = vault.db.reader.selectFrom('audit_events').select('id');
  assert.deepEqual(await query.where('action', 'like', 'dns_provider.%').execute(), []);
});
