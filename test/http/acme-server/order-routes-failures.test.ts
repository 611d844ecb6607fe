/**
 * Orders while the database fails: no certificate leaves the vault that is not stored, and the client may try again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StorageError } from '../../../src/base/storage-error.ts';
import { AcmeTestClient, assertProblem, csrFor, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';

test('an order whose certificate could not be stored stays ready, and is finalized by the next request', async (t) => {
  let fails = false;
  const server = await testServer(t, {
    inPlaceOf: (vault) => {
      const db = new Proxy(vault.db, {
        get: (target, name) => {
          if (name === 'write' && fails) return () => Promise.reject(new StorageError('the disk is full'));
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      return { ...vault, db };
    },
  });
  const client = await AcmeTestClient.registered(server.url, await makeAcmeClient(server.vault));
  // The first certificate of a day also records until when the CA certificate is needed.
  await client.issue(['first.example.test']);
  const { json, headers } = await client.order(['www.example.test']);
  const csr = await csrFor(['www.example.test']);
  fails = true;
  const refused = await client.post(json.finalize, { csr });
  assertProblem(refused, 'serverInternal', 503);
  assert.equal(refused.headers.get('Retry-After'), '5');
  assert.match(refused.headers.get('Replay-Nonce') ?? '', /^[\w-]{43}$/);
  assertProblem(await client.order(['www.example.test']), 'serverInternal', 503);
  fails = false;
  assert.equal((await client.post(headers.get('Location') ?? '')).json.status, 'ready');
  assert.equal(eventsOf(server.dataDir, 'certificate.issue').length, 1);
  assert.equal((await client.post(json.finalize, { csr })).json.status, 'valid');
  assert.equal(eventsOf(server.dataDir, 'certificate.issue').length, 2);
});
