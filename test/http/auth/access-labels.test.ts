/** Access by labels: allowlists of API keys, and the reach of people and of keys with a role. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { requireIntegrity } from '../../../src/base/integrity.ts';
import { includesRole, type Role } from '../../../src/base/role.ts';
import { listRefusedRows } from '../../../src/db/audit/row-list.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { operationReach } from '../../../src/http/auth/operation-reach.ts';
import { operationRoles } from '../../../src/http/auth/operation-roles.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

const path = '/api/v1/certificates';

/** Certificates of two teams and one of none, and people whose reach is one team. */
async function teams(t: TestContext) {
  const server = await checkedServer(t, {
    administrators: { 'token-of-operator': 'olga', 'token-of-viewer': 'vera', 'token-of-admin': 'ada' },
    roles: { olga: 'operator', vera: 'viewer', ada: 'admin' },
    reaches: { olga: ['team=web'], vera: ['team=web'] },
  });
  const { vault } = server;
  await makeCertificate(vault, 'shop', undefined, { labels: ['team=web'] });
  await makeCertificate(vault, 'ledger', undefined, { labels: ['team=db'] });
  await makeCertificate(vault, 'plain');
  const relabel = (name: string, labels: string[]) => changeCertificate(vault, localCli, name, { labels });
  const ask = async (role: Role, method: string, target: string, body?: unknown) => {
    const response = await server.get(target, undefined, {
      method,
      headers: {
        ...{ Cookie: `vault_session=token-of-${role}`, 'Sec-Fetch-Site': 'same-origin' },
        'Content-Type': 'application/json',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text) };
  };
  return { server, vault, relabel, ask };
}

const names = (body: readonly { readonly name: string }[]) => body.map(({ name }) => name);

suite('an API key with a label in its allowlist', () => {
  const rights = { scopes: ['certificates:read', 'private_keys:read'], certificates: [] } as const;

  test('reads the certificates with the label and no others, which whoami shows', async (t) => {
    const { server, vault } = await teams(t);
    const { raw } = await makeKey(vault, { ...rights, certificate_labels: ['team=web'] });
    assert.equal((await server.get(`${path}/shop/private.key`, raw)).status, 200);
    for (const name of ['ledger', 'plain', 'missing', '%00']) {
      assert.equal((await server.get(`${path}/${name}/fullchain.crt`, raw)).status, 403, name);
    }
    const listed = (await (await server.get(path, raw)).json()) as { name: string }[];
    assert.deepEqual(names(listed), ['shop']);
    const whoami = (await (await server.get('/api/v1/whoami', raw)).json()) as Record<string, unknown>;
    assert.deepEqual(whoami.certificate_labels, ['team=web']);
  });

  test('reads a certificate from the next request on after this gets the label, until it loses it', async (t) => {
    const { server, vault, relabel } = await teams(t);
    const { raw } = await makeKey(vault, { ...rights, certificate_labels: ['team=web', 'team=ops'] });
    const status = async () => (await server.get(`${path}/plain/private.key`, raw)).status;
    assert.equal(await status(), 403);
    await relabel('plain', ['team=ops']);
    assert.equal(await status(), 200);
    await relabel('plain', ['team=db']);
    assert.equal(await status(), 403);
  });

  test('reads the certificates that the allowlist has by name, too', async (t) => {
    const { server, vault } = await teams(t);
    const { raw } = await makeKey(vault, {
      ...rights,
      certificates: ['plain'],
      certificate_labels: ['team=db'],
    });
    const listed = (await (await server.get(`${path}?sort=status`, raw)).json()) as { name: string }[];
    assert.deepEqual(names(listed), ['ledger', 'plain']);
    assert.equal((await server.get(`${path}/plain`, raw)).status, 200);
    assert.equal((await server.get(`${path}/shop`, raw)).status, 403);
  });

  test('is listed as a key of the certificates with the label', async (t) => {
    const { vault, ask } = await teams(t);
    const { id } = await makeKey(vault, { ...rights, certificate_labels: ['team=web'] });
    const { body } = await ask('admin', 'GET', `${path}/shop/api-keys`);
    assert.deepEqual(
      body.map((key: { id: number }) => key.id),
      [id],
    );
  });

  test('gets nothing by a label that was written into the database', async (t) => {
    const { server, vault, relabel } = await teams(t);
    const { raw } = await makeKey(vault, { ...rights, certificate_labels: ['team=web'] });
    const statuses = async (name: string) => {
      const listed = (await (await server.get(path, raw)).json()) as { name: string }[];
      return [(await server.get(`${path}/${name}/private.key`, raw)).status, names(listed)];
    };
    const run = (sql: string, ...values: unknown[]) =>
      outside(server.dataDir, (db) => db.prepare(sql).run(...values));
    const tag = outside(server.dataDir, (db) =>
      db.prepare("select labels_tag from certificates where name = 'shop'").pluck().get(),
    );
    const write = `update certificates set labels = '["team=web"]'`;
    const index = `insert into object_labels (kind, label, object_id)
      select 'certificate', 'team=web', id from certificates where name in ('plain', 'ledger')`;
    run(index);
    run(`${write} where name in ('plain', 'ledger')`);
    assert.deepEqual(await statuses('plain'), [403, ['shop']]);
    assert.deepEqual(await statuses('ledger'), [403, ['shop']]);
    // The tag of another certificate, and an older one of this.
    await relabel('shop', []);
    run(`${write}, labels_tag = ? where name in ('plain', 'shop')`, tag);
    run(index.replace("'plain', 'ledger'", "'shop'"));
    assert.deepEqual(await statuses('plain'), [403, []]);
    assert.deepEqual(await statuses('shop'), [403, []]);
  });
});

suite('a person with a reach', () => {
  const cases: readonly (readonly [Role, method: string, target: string, status: number, body?: unknown])[] =
    [
      ['viewer', 'GET', `${path}/shop`, 200],
      ['viewer', 'GET', `${path}/plain`, 403],
      ['viewer', 'GET', `${path}/missing`, 403],
      ['viewer', 'GET', `${path}/shop/settings`, 200],
      ['viewer', 'GET', `${path}/ledger/settings`, 403],
      ['viewer', 'GET', `${path}/ledger/renewals`, 403],
      ['viewer', 'GET', `${path}/ledger/api-keys`, 403],
      ['viewer', 'GET', '/api/v1/renewals?certificate=ledger', 403],
      ['viewer', 'GET', '/api/v1/renewals/1', 403],
      ['viewer', 'GET', '/api/v1/issuers', 200],
      ['viewer', 'GET', '/api/v1/audit-events', 403],
      ['viewer', 'GET', '/api/v1/deleted-certificates', 403],
      ['operator', 'PATCH', `${path}/shop`, 200, { auto_renew: false }],
      ['operator', 'PATCH', `${path}/ledger`, 403, { auto_renew: false }],
      ['operator', 'PATCH', `${path}/shop`, 403, { labels: ['team=web', 'x=y'] }],
      ['operator', 'PUT', `${path}/shop`, 403, { domains: ['shop.example.test'], labels: ['team=db'] }],
      ['operator', 'PUT', `${path}/ledger`, 403, { domains: ['ledger.example.test'] }],
      ['operator', 'PUT', `${path}/new`, 403, { domains: ['new.example.test'] }],
      ['operator', 'PUT', `${path}/new`, 201, { domains: ['new.example.test'], labels: ['team=web'] }],
      ['operator', 'POST', path, 403, { name: 'new', domains: ['new.example.test'] }],
      ['operator', 'POST', path, 403, { name: 'new', domains: ['new.test'], labels: ['team=db'] }],
      ['operator', 'POST', path, 201, { name: 'new', domains: ['new.test'], labels: ['team=web'] }],
      ['operator', 'DELETE', `${path}/ledger`, 403],
      ['operator', 'DELETE', `${path}/shop`, 204],
      ['operator', 'POST', `${path}/ledger/renew`, 403],
      ['admin', 'PATCH', `${path}/ledger`, 200, { labels: ['team=web'] }],
    ];
  for (const [role, method, target, status, body] of cases) {
    const with_ = body === undefined ? '' : ` with ${JSON.stringify(body)}`;
    test(`as ${role} gets ${status} for ${method} ${target}${with_}`, async (t) => {
      const { ask } = await teams(t);
      assert.equal((await ask(role, method, target, body)).status, status);
    });
  }

  test('sees only certificates, renewals, keys and clients with a label of it', async (t) => {
    const { vault, ask } = await teams(t);
    await makeKey(vault, { name: 'ours', labels: ['team=web'] });
    const theirs = await makeKey(vault, { name: 'theirs', labels: ['team=db'] });
    assert.deepEqual(names((await ask('viewer', 'GET', path)).body), ['shop']);
    assert.deepEqual(names((await ask('viewer', 'GET', `${path}?label=team%3Ddb`)).body), []);
    assert.deepEqual(names((await ask('viewer', 'GET', '/api/v1/api-keys')).body), ['ours']);
    assert.deepEqual((await ask('viewer', 'GET', '/api/v1/acme-clients')).body, []);
    assert.deepEqual((await ask('viewer', 'GET', '/api/v1/notification-channels')).body, []);
    assert.equal((await ask('operator', 'POST', `/api/v1/api-keys/${theirs.id}/revoke`)).status, 403);
    await ask('operator', 'POST', `${path}/shop/renew`);
    await ask('admin', 'POST', `${path}/ledger/renew`);
    const renewals = (await ask('viewer', 'GET', '/api/v1/renewals')).body;
    assert.deepEqual(
      renewals.map(({ certificate }: { certificate: string }) => certificate),
      ['shop'],
    );
  });

  test('is told their reach, and the audit log has the refusal', async (t) => {
    const { server, ask } = await teams(t);
    const { body } = await ask('viewer', 'GET', `${path}/ledger`);
    assert.match(body.detail, /^This is outside your reach: team=web\. /);
    const [{ detail } = assert.fail()] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(detail.reach, 'team=web');
  });
});

test('the reach of an API key with a role confines an allowlist of all certificates, too', async (t) => {
  const { server, vault } = await teams(t);
  const { raw } = await makeKey(vault, { role: 'operator', reach: ['team=web'] });
  assert.equal((await server.get(`${path}/shop/private.key`, raw)).status, 200);
  assert.equal((await server.get(`${path}/plain/private.key`, raw)).status, 403);
  assert.equal((await server.get(`${path}/plain/settings`, raw)).status, 403);
  const listed = (await (await server.get(path, raw)).json()) as { name: string }[];
  assert.deepEqual(names(listed), ['shop']);
});

test('the table of reach has only operations that viewers and operators may call', () => {
  const known = Object.keys(operationReach).filter((id) => {
    const role = operationRoles[id];
    return role === undefined || includesRole(role, 'admin');
  });
  assert.deepEqual(known, []);
});

test('a person with a reach is refused every operation that is not in the table of reach', async (t) => {
  const { server } = await teams(t);
  for (const { id, method, path: place, access } of routes) {
    if (access.kind !== 'administrator' && access.kind !== 'session') continue;
    if (operationReach[id] !== undefined) continue;
    const target = `${place.replaceAll(/\{\w+\}/g, '999999')}?nonsense=1`;
    const lines = ['Sec-Fetch-Site: same-origin', 'Cookie: vault_session=token-of-operator'];
    const { status } = await server.raw(method === 'GET' ? 'HEAD' : method, target, lines);
    assert.equal(status, 403, id);
  }
});

test('labels that were written into the database are reported, and those of a new certificate of the name are not', async (t) => {
  const { server, vault } = await teams(t);
  const { db } = vault;
  const refused = () => listRefusedRows(db.reader, requireIntegrity(db));
  await deleteCertificate(vault, localCli, 'ledger', { force: false });
  await makeCertificate(vault, 'ledger', undefined, { labels: ['team=web'] });
  assert.deepEqual(await refused(), []);
  assert.deepEqual((await verifyChain(vault)).faults, []);
  outside(server.dataDir, (database) =>
    database.prepare(`update certificates set labels = '["team=db"]' where name = 'ledger'`).run(),
  );
  assert.deepEqual(await refused(), ['the labels of certificate ledger']);
});
