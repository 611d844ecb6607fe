/**
 * ACME clients over HTTP: what is refused and where it is wrong, that the key is said once, and that lists have pages.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { administration } from '../../harness/http/administration.ts';
import { eventsOf, makeKey } from '../../harness/http/fixtures.ts';

const path = '/api/v1/acme-clients';
const body = { name: 'caddy', domains: ['*.example.com'] };

type Client = { readonly id: number; readonly name: string; readonly kid: string } & Record<string, unknown>;
type Created = Client & {
  readonly hmac_key: string;
  readonly directories: { issuer: string; url: string }[];
};

suite('ACME clients over HTTP', () => {
  test('are for administrators only', async (t) => {
    const { server } = await administration(t);
    const key = await makeKey(server.vault, { name: 'all' });
    assert.equal((await server.get(path)).status, 403);
    assert.equal((await server.get(path, key.raw)).status, 403);
  });

  test('are rejected with the path of the invalid field, and not stored', async (t) => {
    const { server, expect } = await administration(t);
    await expect(201, 'POST', path, body);
    const wrong: [status: number, body: object, where: string][] = [
      [400, { ...body, domains: [] }, 'domains'],
      [400, { ...body, domains: ['a.example', 'a.*.example'] }, 'domains.1'],
      [400, { ...body, name: 'x', issuers: ['none'] }, 'issuers'],
      [400, { ...body, name: 'x', profiles: ['local-ca/none'] }, 'profiles'],
      [400, { ...body, profiles: ['web'] }, 'profiles.0'],
      [400, { ...body, allowed_networks: ['here'] }, 'allowed_networks.0'],
      [400, { ...body, validation: ['email'] }, 'validation.0'],
      [400, { ...body, rate: 0 }, 'rate'],
      [400, { ...body, rate: '5' }, 'rate'],
      [400, { ...body, expires_at: 'soon' }, 'expires_at'],
      [400, { ...body, expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [400, { ...body, name: '' }, 'name'],
      [400, { ...body, kid: 'mine' }, ''],
      [409, body, 'name'],
    ];
    for (const [status, wrongBody, where] of wrong) {
      const { errors } = await expect<{ errors: { path: string }[] }>(status, 'POST', path, wrongBody);
      assert.equal(errors[0]?.path, where, JSON.stringify(wrongBody));
    }
    const [, ...others] = await expect<Client[]>(200, 'GET', path);
    assert.deepEqual(others, []);
    assert.equal(eventsOf(server.dataDir, 'acme_client.create').length, 1);
  });

  test('show their key once, when they are created and rotated', async (t) => {
    const { server, expect, said } = await administration(t);
    const created = await expect<Created>(201, 'POST', path, { ...body, rate: 9 });
    assert.match(created.hmac_key, /^[\w-]{43}$/);
    assert.equal(created.directories[0]?.issuer, 'local-ca');
    assert.match(created.directories[0]?.url ?? '', /^http:\/\/[^/]+\/acme\/local-ca\/directory$/);
    const { hmac_key: _, directories: __, ...view } = created;
    assert.deepEqual(await expect(200, 'GET', `${path}/${created.id}`), view);
    assert.deepEqual(await expect(200, 'GET', path), [view]);
    const rotated = await expect<Created>(200, 'POST', `${path}/${created.id}/rotate`);
    assert.notEqual(rotated.kid, created.kid);
    assert.notEqual(rotated.hmac_key, created.hmac_key);
    await expect(200, 'GET', '/api/v1/audit-events');
    assert.deepEqual(
      [created, rotated].map(({ hmac_key: key }) => said().split(key).length - 1),
      [1, 1],
    );
    const [event] = eventsOf(server.dataDir, 'acme_client.rotate');
    assert.equal(event?.actor, 'admin:alice');
  });

  test('change only the fields in the PATCH body, and reject invalid values', async (t) => {
    const { expect } = await administration(t);
    const { id } = await expect<Created>(201, 'POST', path, body);
    const changed = await expect<Client>(200, 'PATCH', `${path}/${id}`, {
      domains: ['b.example', '10.0.0.0/8'],
      validation: ['dns-01'],
    });
    assert.deepEqual(
      [changed.name, changed.domains, changed.validation, changed.issuers],
      ['caddy', ['b.example', '10.0.0.0/8'], ['dns-01'], ['local-ca']],
    );
    for (const wrong of [{ domains: [] }, { name: null }, { issuers: [] }, { hmac_key: 'x' }]) {
      await expect(400, 'PATCH', `${path}/${id}`, wrong);
    }
    assert.deepEqual(await expect(200, 'GET', `${path}/${id}`), changed);
  });

  test('can be deleted only after revocation, and not rotated or changed after it', async (t) => {
    const { expect, ask } = await administration(t);
    const { id } = await expect<Created>(201, 'POST', path, body);
    assert.equal((await expect(409, 'DELETE', `${path}/${id}`)).code, 'acme_client_active');
    for (const _ of ['first', 'again']) {
      assert.equal((await expect<Client>(200, 'POST', `${path}/${id}/revoke`)).state, 'revoked');
    }
    assert.equal((await expect(409, 'POST', `${path}/${id}/rotate`)).code, 'acme_client_inactive');
    assert.equal((await expect(409, 'PATCH', `${path}/${id}`, { name: 'x' })).code, 'acme_client_inactive');
    assert.equal((await ask('DELETE', `${path}/${id}`)).status, 204);
    for (const unknown of [String(id), '0', 'caddy', '9'.repeat(20)]) {
      assert.equal((await expect(404, 'GET', `${path}/${unknown}`)).code, 'acme_client_not_found');
    }
  });

  test('are listed in pages, oldest first', async (t) => {
    const { expect, ask } = await administration(t);
    for (const name of ['a', 'b', 'c']) await expect(201, 'POST', path, { ...body, name });
    const first = await ask('GET', `${path}?limit=2`);
    assert.deepEqual(
      (first.json as Client[]).map(({ name }) => name),
      ['a', 'b'],
    );
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('Link') ?? '')?.[1] ?? '';
    assert.deepEqual(
      (await expect<Client[]>(200, 'GET', next)).map(({ name }) => name),
      ['c'],
    );
  });
});
