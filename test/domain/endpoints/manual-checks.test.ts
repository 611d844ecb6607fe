/** Checks that people wait for: only so many at a time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkNow } from '../../../src/domain/endpoints/manual-checks.ts';
import { scriptedServer, tlsServer } from '../../harness/endpoints/tls-servers.ts';
import { endpointAt, identityIn } from '../../harness/endpoints/vault-endpoints.ts';
import { makeCertificate } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('the seventeenth check at a time is rejected until another one has ended, however it ends', async (t) => {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'web');
  const identity = await identityIn(vault, 'web');
  const silent = await scriptedServer(t, identity, async () => 'stay');
  const quick = await tlsServer(t, identity);
  const slow = await endpointAt(vault, silent.port);
  const fast = await endpointAt(vault, quick.port, { certificate: 'web' });
  const { signal } = new AbortController();
  const stop = new AbortController();
  const running = Array.from({ length: 16 }, () => checkNow(vault, slow, stop.signal));
  await assert.rejects(checkNow(vault, fast, signal), { code: 'rate_limited', retryAfter: 5 });
  stop.abort();
  const ends = await Promise.allSettled(running);
  assert(ends.every(({ status }) => status === 'rejected'));
  assert.equal((await checkNow(vault, fast, signal)).state, 'current');
  for (let tries = 0; tries < 17; tries += 1) {
    await assert.rejects(checkNow(vault, 999, signal), { code: 'endpoint_not_found' });
  }
});
