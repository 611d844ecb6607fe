/**
 * Names that look like others, over HTTP: new ones are refused with the character that is wrong, stored ones keep
 * working.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { toJson } from '../../../../src/base/json.ts';
import { tagApiKey } from '../../../../src/db/audit/row-tags.ts';
import { updateApiKey } from '../../../../src/db/tables/access/api-keys.ts';
import { record, system } from '../../../../src/domain/audit/audit.ts';
import { administration } from '../../../harness/http/administration.ts';
import { makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import { goodPassword } from '../../../harness/http/sign-in-fixtures.ts';

type Problem = { code: string; detail: string; errors: { path: string; message: string }[] };
type Key = { id: number; name: string };

const keys = '/api/v1/api-keys';
const keyBody = { name: 'web', scopes: ['certificates:read'], certificates: ['*'] };

/** What has a name of its own: the endpoint, the other fields of a new one, and the code for a name that is taken. */
const named: Readonly<Record<string, readonly [path: string, rest: object, status: number, code: string]>> = {
  'API key': [keys, keyBody, 409, 'api_key_exists'],
  'ACME client': ['/api/v1/acme-clients', { domains: ['a.example.test'] }, 409, 'acme_client_exists'],
  'notification channel': [
    '/api/v1/notification-channels',
    { type: 'webhook', settings: { url: 'https://hooks.a.test/x' }, events: ['renewal.failed'] },
    400,
    'invalid_request',
  ],
  administrator: ['/api/v1/administrators', { password: goodPassword }, 409, 'administrator_exists'],
  profile: ['/api/v1/issuers/local-ca/profiles', {}, 409, 'profile_exists'],
  'private CA': ['/api/v1/issuers', { type: 'local-ca' }, 400, 'invalid_request'],
};

for (const [what, [path, rest, status, code]] of Object.entries(named)) {
  suite(`the name of a new ${what}`, () => {
    test('is rejected with mixed scripts or invisible characters, and the error reports the code point', async (t) => {
      const { expect } = await administration(t);
      for (const [name, point] of [
        ['w\u0435b', 'U+0435'],
        ['web\u200b', 'U+200B'],
        ['x\u202ebew', 'U+202E'],
      ] as const) {
        const problem = await expect<Problem>(400, 'POST', path, { ...rest, name });
        assert.deepEqual([problem.code, problem.errors[0]?.path], ['invalid_request', 'name']);
        assert(problem.detail.includes(point), problem.detail);
        assert.match(problem.detail, /remove|write it in one script/);
      }
    });

    test('is rejected if it differs from an existing name only in case', async (t) => {
      const { expect } = await administration(t);
      await expect(201, 'POST', path, { ...rest, name: 'web' });
      const problem = await expect<Problem>(status, 'POST', path, { ...rest, name: 'Web' });
      assert.equal(problem.code, code);
      assert.match(problem.detail, /"?web"? already exists|already has a profile named web/);
      await expect(201, 'POST', path, { ...rest, name: 'web2' });
    });
  });
}

suite('the name of an API key', () => {
  test('is rejected on create and update if it equals another name after Unicode normalization', async (t) => {
    const { expect } = await administration(t);
    await expect(201, 'POST', keys, { ...keyBody, name: 'Büro 1' });
    const { id } = await expect<Key>(201, 'POST', keys, { ...keyBody, name: 'other' });
    for (const name of ['BU\u0308RO 1', 'Büro\u00a01', 'Ｂüro １']) {
      for (const [method, path, body] of [
        ['POST', keys, { ...keyBody, name }],
        ['PATCH', `${keys}/${id}`, { name }],
      ] as const) {
        const { code, detail } = await expect<Problem>(409, method, path, body);
        assert.deepEqual([code, /"Büro 1" already exists/.test(detail)], ['api_key_exists', true], name);
      }
    }
    await expect(400, 'PATCH', `${keys}/${id}`, { name: 'oth\u0435r' });
    const renamed = await expect<Key>(200, 'PATCH', `${keys}/${id}`, { name: 'OTHER' });
    assert.equal(renamed.name, 'OTHER', 'its own name in another case is not taken');
    await expect(201, 'POST', keys, { ...keyBody, name: 'бюро 1' });
  });

  test('keeps working if it was stored before names were validated', async (t) => {
    const { server, expect } = await administration(t);
    const { vault } = server;
    await makeCertificate(vault, 'www');
    await makeKey(vault, { name: 'web' });
    const old = await makeKey(vault, { name: 'for a moment' });
    const name = 'w\u0435b\u200b';
    await vault.db.write(async (writer) => {
      await updateApiKey(writer, old.id, {
        name,
        scopes: toJson(['certificates:read'] as const),
        any_certificate: 1,
        allowed_networks: toJson([]),
        profiles: null,
        role: null,
        client_certificate_id: null,
        client_certificate: null,
        ...{ labels: null, certificate_labels: null, reach: null },
        expires_at: null,
      });
      await tagApiKey(writer, old.id);
      record(writer, { action: 'api_key.update', actor: system, resource: `api-key:${old.id}` }, 0);
    });
    assert.equal((await server.get('/api/v1/certificates/www', old.raw)).status, 200);
    const listed = await expect<Key[]>(200, 'GET', keys);
    assert(listed.some((key) => key.name === name));
    const change = { name, scopes: ['certificates:read'] };
    assert.equal((await expect<Key>(200, 'PATCH', `${keys}/${old.id}`, change)).name, name);
    await expect(200, 'POST', `${keys}/${old.id}/revoke`);
    assert.equal((await server.get('/api/v1/certificates/www', old.raw)).status, 401);
    await expect(204, 'DELETE', `${keys}/${old.id}`);
  });
});
