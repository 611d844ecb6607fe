/** Every operation with every role, as a person and as an API key has it: who gets through, and who is refused. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { includesRole, type Role, roles } from '../../../src/base/role.ts';
import { scopesOfRole } from '../../../src/domain/access/identity.ts';
import { operationRoles } from '../../../src/http/auth/operation-roles.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { type CheckedServer, checkedServer } from '../../harness/http/checked.ts';
import { eventsOf, makeKey } from '../../harness/http/fixtures.ts';

const ofPeople = routes.filter(({ access }) => access.kind === 'administrator' || access.kind === 'session');
const ofKeys = routes.filter(({ access }) => access.kind === 'scope');

/** People with each role, with the name of the role. */
const people = {
  administrators: Object.fromEntries(roles.map((role) => [`token-of-${role}`, role])),
  roles: Object.fromEntries(roles.map((role) => [role, role])),
};

const asPerson = (role: Role) => ['Sec-Fetch-Site: same-origin', `Cookie: vault_session=token-of-${role}`];

/** Asks for something that nobody can want: who may call it gets 400, and nothing changes. */
async function statusOf({ raw }: CheckedServer, { method, path }: Route, lines: readonly string[]) {
  const place = `${path.replaceAll(/\{\w+\}/g, '999999')}?nonsense=1`;
  return (await raw(method === 'GET' ? 'HEAD' : method, place, lines)).status;
}

test('the table has each operation of administrators, and no other', () => {
  const ids = ofPeople.map(({ id }) => id);
  assert.deepEqual(Object.keys(operationRoles).toSorted(), ids.toSorted());
});

suite('a person', () => {
  for (const role of roles) {
    test(`with the role ${role} may do what this role includes, and nothing else`, async (t) => {
      const server = await checkedServer(t, people);
      for (const route of ofPeople) {
        const needed = operationRoles[route.id] as Role;
        const expected = includesRole(role, needed) ? 400 : 403;
        assert.equal(await statusOf(server, route, asPerson(role)), expected, route.id);
      }
      for (const route of ofKeys) {
        const needed = route.access.kind === 'scope' && [route.access.scope, route.access.orScope];
        assert(needed);
        const expected = scopesOfRole(role).some((scope) => needed.includes(scope)) ? 400 : 403;
        assert.equal(await statusOf(server, route, asPerson(role)), expected, route.id);
      }
    });
  }
});

async function keyWith(t: TestContext, role: Role | undefined) {
  const server = await checkedServer(t);
  const rights = { scopes: ['certificates:read'], ...(role !== undefined && { role }) } as const;
  const key = await makeKey(server.vault, rights);
  return { server, key, lines: [`Authorization: Bearer ${key.raw}`] };
}

suite('an API key', () => {
  for (const role of [undefined, ...roles]) {
    test(`with ${role === undefined ? 'no role' : `the role ${role}`} has its scopes and what the role includes`, async (t) => {
      const { server, lines } = await keyWith(t, role);
      for (const route of ofPeople) {
        const { access } = route;
        const isPersonal =
          access.kind === 'session' || (access.kind === 'administrator' && access.isPersonal);
        const needed = operationRoles[route.id] as Role;
        const isAllowed = role !== undefined && !isPersonal && includesRole(role, needed);
        assert.equal(await statusOf(server, route, lines), isAllowed ? 400 : 403, route.id);
      }
      for (const route of ofKeys) {
        const isAllowed = route.access.kind === 'scope' && route.access.scope === 'certificates:read';
        assert.equal(await statusOf(server, route, lines), isAllowed ? 400 : 403, route.id);
      }
    });
  }

  test('with a role needs neither cookie nor origin, and its refusal names both roles in the audit log', async (t) => {
    const { server, key, lines } = await keyWith(t, 'viewer');
    const elsewhere = ['Origin: https://elsewhere.example', 'Sec-Fetch-Site: cross-site'];
    const listed = await server.raw('GET', '/api/v1/api-keys', [...lines, ...elsewhere]);
    assert.equal(listed.status, 200);
    const refused = await server.raw('POST', `/api/v1/api-keys/${key.id}/revoke`, [...lines, ...elsewhere]);
    assert.equal(refused.status, 403);
    assert.match(refused.body, /This request requires the role operator; this API key has viewer\./);
    const [{ actor, detail: recorded } = assert.fail()] = eventsOf(server.dataDir, 'access.refuse');
    assert.equal(actor, key.actor);
    assert.deepEqual(
      { ...recorded, target: undefined },
      {
        ...{ code: 'forbidden', needs: 'operator', role: 'viewer', target: undefined },
      },
    );
  });
});
