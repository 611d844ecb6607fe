/**
 * Upgrades of vaults whose CA, name server, hook or mail relay is on this very machine: what was stored goes on, and
 * nothing new.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Settings } from '../../../src/cli/settings/settings.ts';
import { deleteSettings, putSetting, readSetting } from '../../../src/db/tables/settings.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import { addChannel } from '../../../src/domain/notifications/notification-channels.ts';
import { createChannelInput } from '../../../src/domain/notifications/notification-inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeOlder } from '../../harness/database/older-vault.ts';
import { addWebhook, written } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const email = { from: 'vault@a.test', to: ['ops@a.test'], security: 'none' };

async function fill(vault: Vault): Promise<void> {
  const providers: readonly (readonly [type: string, config: object])[] = [
    ['rfc2136', { server: '127.0.0.1', unsigned: true }],
    ['webhook', { url: 'http://localhost:8053/hook' }],
    ['acme-dns', { url: 'https://[::1]', username: 'a', password: 'b', subdomain: 'c' }],
    ['rfc2136', { server: 'ns.example.test', unsigned: true }],
    ['webhook', { url: 'https://10.0.0.1/hook' }],
  ];
  for (const [index, [type, config]] of providers.entries()) {
    const input = parseInput(createDnsProviderInput, { name: `p${index}`, type, zones: [`z${index}.test`] });
    await addDnsProvider(vault, localCli, input, written(config));
  }
  await addWebhook(vault, 'http://127.0.0.2:9000/x');
  const channel = parseInput(createChannelInput, { name: 'mail', type: 'email' });
  await addChannel(vault, localCli, channel, written({ host: '127.0.0.1', ...email }));
}

const kept = ['127.0.0.1:53', '127.0.0.1:8053', '[::1]:8053', '[::1]:443', '127.0.0.2:9000', '127.0.0.1:25'];

function isOpen(vault: Vault, host: string, port: number): boolean {
  try {
    vault.guard.target(host, port);
    return true;
  } catch {
    // The guard's refusal, which its own tests are about.
    return false;
  }
}

/** Opens the vault in the directory with nothing set, or with this. */
async function opened(t: TestContext, dataDir?: string, allowOutbound?: Settings['allowOutbound']) {
  return testVault(t, { ...(dataDir !== undefined && { dataDir }), settings: { allowOutbound } });
}

test('an upgraded vault allows only the local addresses and ports stored before the upgrade', async (t) => {
  const before = await opened(t);
  await fill(before.vault);
  await makeOlder(before.vault);
  await before.close();
  const upgraded = await opened(t, before.dataDir);
  assert.match(
    upgraded.log.lines.join('\n'),
    /"127\.0\.0\.1:25".*allowing outbound addresses stored before --allow-outbound existed/,
  );
  const stored = await readSetting(upgraded.vault.db.reader, 'kept-outbound-targets');
  assert.deepEqual(new Set(JSON.parse(String(stored))), new Set(kept));
  for (const [host, port] of [
    ['127.0.0.1', 53],
    ['localhost', 8053],
    ['::1', 443],
    ['127.0.0.2', 9000],
  ] as const) {
    assert.equal(isOpen(upgraded.vault, host, port), true, `${host} ${port}`);
  }
  for (const [host, port] of [
    ['127.0.0.1', 54],
    ['127.0.0.2', 53],
    ['::1', 53],
    ['169.254.169.254', 80],
  ] as const) {
    assert.equal(isOpen(upgraded.vault, host, port), false, `${host} ${port}`);
  }
  await addWebhook(upgraded.vault, 'http://127.0.0.3:7/', { name: 'later' });
  await upgraded.close();
  const again = await opened(t, before.dataDir);
  assert.equal(isOpen(again.vault, '127.0.0.3', 7), false);
  assert.equal(isOpen(again.vault, '127.0.0.1', 53), true);
  await again.close();
  const strict = await opened(t, before.dataDir, []);
  assert.equal(isOpen(strict.vault, '127.0.0.1', 53), false);
});

test('a new vault does not allow the local targets of its stored records after it is reopened', async (t) => {
  const first = await opened(t);
  await fill(first.vault);
  await first.close();
  const again = await opened(t, first.dataDir);
  for (const text of kept) {
    const [, host = '', port] = /^\[?(.+?)\]?:(\d+)$/.exec(text) ?? [];
    assert.equal(isOpen(again.vault, host, Number(port)), false, text);
  }
});

test('an upgrade skips records that cannot be decrypted and allows the targets of the others', async (t) => {
  const first = await opened(t);
  await fill(first.vault);
  await first.vault.db.write(async (writer) => {
    await writer
      .updateTable('dns_providers')
      .set({ sealed_secret: Buffer.alloc(80) })
      .execute();
  });
  await makeOlder(first.vault);
  await first.close();
  const { vault } = await opened(t, first.dataDir);
  assert.equal(isOpen(vault, '127.0.0.1', 25), true);
  assert.equal(isOpen(vault, '127.0.0.1', 53), false);
});

test('a tampered list of allowed targets is rejected with an error, and a removed list is not rebuilt', async (t) => {
  const before = await opened(t);
  await fill(before.vault);
  await makeOlder(before.vault);
  await before.close();
  const upgraded = await opened(t, before.dataDir);
  assert.equal(isOpen(upgraded.vault, '127.0.0.1', 53), true);
  await upgraded.vault.db.write((writer) => putSetting(writer, 'kept-outbound-targets', '["127.0.0.1"]'));
  await upgraded.close();
  const changed = await opened(t, before.dataDir);
  assert.equal(isOpen(changed.vault, '127.0.0.1', 53), false);
  assert.match(changed.log.lines.join('\n'), /"level":"error".*kept outbound addresses refused/);
  await changed.vault.db.write((writer) =>
    deleteSettings(writer, ['kept-outbound-targets', 'kept-outbound-tag']),
  );
  await changed.close();
  const removed = await opened(t, before.dataDir);
  assert.equal(isOpen(removed.vault, '127.0.0.1', 53), false, 'what is stored now is not looked at again');
});
