/** About the vault: how it is and how much it holds, and nothing of the machine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { putSetting } from '../../../src/db/tables/settings.ts';
import { makeAccount } from '../../harness/http/acme-fixtures.ts';
import { administration } from '../../harness/http/administration.ts';
import { importOne, makeCertificate, makeKey, makePending } from '../../harness/http/fixtures.ts';

type About = {
  version: string;
  status: string;
  checks: object;
  counts: Record<string, unknown>;
  backup: { last_at: string | null };
};

test('about reports version, status, checks and counts without the data directory path', async (t) => {
  const { server, expect, said } = await administration(t);
  for (const name of ['a', 'b']) await makeCertificate(server.vault, name);
  await importOne(server.vault, 'c', { chain: true });
  await makePending(server.vault, 'd');
  await expect(200, 'PATCH', '/api/v1/certificates/a', { disabled: true });
  await makeKey(server.vault);
  await makeAccount(server.vault);
  const about = await expect<About>(200, 'GET', '/api/v1/about');
  assert.equal(about.version, '0.0.0-test');
  assert.deepEqual(about.counts, {
    certificates: { expired: 0, not_yet_valid: 0, expiring: 0, pending: 1, valid: 2, disabled: 1 },
    api_keys: 1,
    issuers: 1,
    dns_providers: 0,
    acme_accounts: 1,
  });
  assert.deepEqual(about.checks, { database: 'ok', master_key: 'ok', renewal_engine: 'failed' });
  assert.equal(about.status, 'not_ready', 'no job runs beside the server of a test');
  assert(!said().includes(server.dataDir));
  server.world.advance(365 * 86_400_000);
  const later = await expect<{ counts: { certificates: object } }>(200, 'GET', '/api/v1/about');
  assert.deepEqual(later.counts.certificates, {
    ...{ expired: 2, not_yet_valid: 0, expiring: 0, pending: 1, valid: 0, disabled: 1 },
  });
});

test('about shows when the last backup was created, or null without a backup', async (t) => {
  const { server, expect } = await administration(t);
  const { db } = server.vault;
  assert.deepEqual((await expect<About>(200, 'GET', '/api/v1/about')).backup, { last_at: null });
  await db.write((writer) => putSetting(writer, 'last-backup-at', Date.parse('2026-11-21T16:00:00.250Z')));
  const { backup } = await expect<About>(200, 'GET', '/api/v1/about');
  assert.deepEqual(backup, { last_at: '2026-11-21T16:00:00.250Z' });
});
