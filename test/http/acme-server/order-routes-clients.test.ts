/** What administrators see of an ACME client while it is used, and what the client sees when they change it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeAcmeClient } from '../../../src/domain/acme-server/clients/acme-client-change.ts';
import { updateAcmeClientInput } from '../../../src/domain/acme-server/clients/acme-client-inputs.ts';
import { viewAcmeClient } from '../../../src/domain/acme-server/clients/acme-client-views.ts';
import { revokeAcmeClient, rotateAcmeClient } from '../../../src/domain/acme-server/clients/acme-clients.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { AcmeTestClient, assertProblem, makeAcmeClient } from '../../harness/acme/server-client.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { checkedServer } from '../../harness/http/checked.ts';

test('changes, rotations and revocations of a client apply at its next request, and its last use is shown', async (t) => {
  const server = await checkedServer(t);
  const { vault } = server;
  const external = await makeAcmeClient(vault, { domains: ['*.example.test'] });
  const { id } = external;
  const lastUse = async () => {
    await vault.keyUse.write();
    const { last_used_at, last_used_ip } = await viewAcmeClient(vault, id);
    return [last_used_at !== null, last_used_ip];
  };
  const change = (changes: object) =>
    changeAcmeClient(vault, localCli, id, parseInput(updateAcmeClientInput, changes));
  const client = await AcmeTestClient.at(server.url);
  assertProblem(await client.register({ ...external, hmacKey: Buffer.alloc(32) }), 'unauthorized', 403);
  assert.deepEqual(await lastUse(), [false, null]);
  assert.equal((await client.register(external)).status, 201);
  assert.deepEqual(await lastUse(), [true, '127.0.0.1']);

  const order = (...names: string[]) =>
    client.post(client.directory.newOrder, {
      identifiers: names.map((value) => ({ type: 'dns', value })),
    });
  const refused = await order('a.example.test', 'example.test', 'b.example');
  assertProblem(refused, 'rejectedIdentifier', 400);
  assert.deepEqual(
    (refused.json.subproblems as { identifier: { value: string } }[]).map(
      ({ identifier }) => identifier.value,
    ),
    ['example.test', 'b.example'],
  );
  await change({ domains: ['*.example.test', 'example.test', 'b.example'] });
  assert.equal((await order('a.example.test', 'example.test', 'b.example')).status, 201);

  await change({ rate: 1 });
  const limited = await order('a.example.test');
  assertProblem(limited, 'rateLimited', 429);
  assert.match(limited.headers.get('Retry-After') ?? '', /^\d+$/);
  await change({ rate: null, allowed_networks: ['192.0.2.0/24'] });
  assert.match((await order('a.example.test')).json.detail, /may not be used from 127\.0\.0\.1/);
  await change({ allowed_networks: [] });

  await rotateAcmeClient(vault, localCli, id);
  assert.equal((await order('a.example.test')).status, 201);
  const late = await AcmeTestClient.at(server.url);
  assertProblem(await late.register(external), 'unauthorized', 403);
  await revokeAcmeClient(vault, localCli, id);
  const dead = await order('a.example.test');
  assertProblem(dead, 'unauthorized', 403);
  assert.match(dead.json.detail, /was revoked/);
});

test('an ACME client whose row was modified outside the vault is rejected, even with an existing account', async (t) => {
  const server = await checkedServer(t);
  const external = await makeAcmeClient(server.vault, { domains: ['a.example.test'] });
  const client = await AcmeTestClient.at(server.url);
  assert.equal((await client.register(external)).status, 201);
  outside(server.dataDir, (db) => db.exec(`update acme_clients set domains = '["*"]'`));
  const identifiers = [{ type: 'dns', value: 'bank.example' }];
  assertProblem(await client.post(client.directory.newOrder, { identifiers }), 'unauthorized', 403);
});
