/**
 * What a refusal costs: whatever is wrong with a key, the same is hashed, looked up and compared, and as often.
 * Counted and not timed, because a clock would only say so on a quiet machine.
 */
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { type TestContext, test } from 'node:test';
import type { CompiledQuery } from 'kysely';
import type { Database, Reader } from '../../../src/db/database.ts';
import { rotateApiKey } from '../../../src/domain/access/api-key-rotation.ts';
import { createApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { Authenticator } from '../../../src/domain/access/authentication.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createApiKeyInput, parseInput } from '../../../src/domain/inputs.ts';
import { testVault } from '../../harness/test-vault.ts';

/** The steps of the work from now on, in their order: `hash`, `timingSafeEqual`, and the tables that are asked. */
function watched(t: TestContext, reader: Reader, steps: string[]): Reader {
  for (const name of ['hash', 'timingSafeEqual', 'createHash', 'createHmac'] as const) {
    const original = crypto[name] as (...args: unknown[]) => unknown;
    t.mock.method(crypto, name, (...args: unknown[]) => {
      steps.push(name);
      return original(...args);
    });
  }
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return {
    executeQuery: (query: CompiledQuery) => {
      steps.push(`from ${query.sql.match(/(?<=\bfrom "?)\w+/g)?.join(', ')}`);
      return reader.executeQuery(query);
    },
    getExecutor: () => reader.getExecutor(),
  } as unknown as Reader;
}

test('rejecting an unknown, wrong, revoked, expired or replaced key takes the same hashes, queries and comparisons', async (t) => {
  const { vault, world } = await testVault(t);
  const scopes = ['certificates:read'];
  const make = async (name: string, more: object = {}) => {
    const input = parseInput(createApiKeyInput, { name, scopes, certificates: ['*'], ...more });
    const { id, raw } = await createApiKey(vault, localCli, input);
    return { id, raw: raw.expose() };
  };
  const neverUsed = parseInput(createApiKeyInput, { name: 'never used', scopes, certificates: ['*'] });
  const active = await make('active');
  const used = await make('used');
  const revoked = await make('revoked');
  const alsoRevoked = await make('revoked too');
  for (const { id } of [revoked, alsoRevoked]) await revokeApiKey(vault, localCli, id);
  const expired = await make('expired', { expires_at: new Date(world.now() + 1000).toISOString() });
  const rotated = await make('rotated');
  const alsoRotated = await make('rotated too');
  for (const { id } of [rotated, alsoRotated]) await rotateApiKey(vault, localCli, id, { overlap: 1000 });
  world.advance(1000);
  const [prefix = '', secret = ''] = active.raw.split('.');
  const wrong = secret.split('').toReversed().join('');
  const presented: Record<string, string> = {
    'an unknown key': `vk_${'x'.repeat(12)}.${secret}`,
    'a wrong secret': `${prefix}.${wrong}`,
    'a wrong secret of a key in use': `${used.raw.split('.')[0]}.${wrong}`,
    'a wrong secret of a revoked key': `${revoked.raw.split('.')[0]}.${wrong}`,
    'a revoked key': alsoRevoked.raw,
    'an expired key': expired.raw,
    'a replaced secret': rotated.raw,
    'a wrong secret of one that was replaced': `${alsoRotated.raw.split('.')[0]}.${wrong}`,
  };
  const steps: string[] = [];
  const reader = watched(t, vault.db.reader, steps);
  const authenticator = new Authenticator({
    ...vault,
    db: { reader, integrity: vault.db.integrity } as unknown as Database,
  });
  await vault.freshness.look();
  const stepsOf = async (raw: string) => {
    steps.length = 0;
    const found = await authenticator.authenticate(raw);
    assert.notEqual(found?.state, 'active');
    return [...steps];
  };
  const compared = async (what: string, expected: readonly string[]) => {
    for (const [which, raw] of Object.entries(presented)) {
      assert.deepEqual((await stepsOf(raw)).toSorted(), expected, `${which}, ${what}`);
    }
  };
  const looked = [
    'createHmac',
    'createHmac',
    'from api_key_certificates, audit_events, api_keys',
    'hash',
    'timingSafeEqual',
    'timingSafeEqual',
    'timingSafeEqual',
  ];
  const remembered = ['hash', 'timingSafeEqual'];
  // Keys that are in use must not be told from others either.
  assert.equal((await authenticator.authenticate(used.raw))?.state, 'active');
  await compared('at first', looked);
  await compared('again', remembered);
  assert.equal((await authenticator.authenticate(active.raw))?.state, 'active');
  await compared('after the right one', remembered);
  await createApiKey(vault, localCli, { ...neverUsed, name: 'another' });
  await vault.freshness.look();
  await compared('after a change', looked);
  await compared('again after a change', remembered);
  steps.length = 0;
  assert.equal((await authenticator.authenticate(active.raw))?.state, 'active');
  assert.deepEqual(steps, ['hash', 'timingSafeEqual'], 'a good key that is remembered asks nothing');
});
