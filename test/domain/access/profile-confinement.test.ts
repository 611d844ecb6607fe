/**
 * API keys that have certificates issued only with profiles of private CAs: over HTTP, in the database, and at the
 * command line.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { opensslRequest } from '../../harness/ca/openssl-requests.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { type Administration, administration } from '../../harness/http/administration.ts';
import { eventsOf, makeKey } from '../../harness/http/fixtures.ts';
import { commandLine, commandWords } from '../../harness/processes/command-line.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const keys = '/api/v1/api-keys';
const issuers = '/api/v1/issuers';
const certificates = '/api/v1/certificates';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Key = { id: number; key: string; profiles: string[] };

const signer = { name: 'signer', scopes: ['certificates:sign'], certificates: ['*'] };

/** A vault with the profile web in two CAs, and certificates with each, with another profile and with none. */
async function prepared(t: TestContext) {
  const admin = await administration(t);
  await admin.expect(201, 'POST', issuers, { type: 'local-ca', name: 'other-ca' });
  for (const path of ['local-ca/profiles', 'other-ca/profiles']) {
    await admin.expect(201, 'POST', `${issuers}/${path}`, { name: 'web', max_lifetime: '30d' });
  }
  await admin.expect(201, 'POST', `${issuers}/local-ca/profiles`, { name: 'people' });
  for (const [name, body] of Object.entries({
    web: { profile: 'web' },
    elsewhere: { profile: 'web', issuer: 'other-ca' },
    person: { profile: 'people' },
    plain: {},
  })) {
    await admin.expect(201, 'POST', certificates, { name, domains: ['www.example.test'], ...body });
  }
  return admin;
}

/** The problem, or the status, of signing the certificate with this key. */
async function sign({ server }: Administration, name: string, key: string): Promise<Problem | number> {
  const { csr } = opensslRequest({ names: 'DNS:www.example.test' });
  const response = await server.get(`${certificates}/${name}/sign`, key, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-pem-file' },
    body: csr,
  });
  return response.status === 202 ? 202 : ((await response.json()) as Problem);
}

const refusal = {
  status: 403,
  code: 'forbidden',
  detail:
    'This API key may have certificates issued only with one of these profiles: local-ca/web. The profiles of a key are set with "vault api-key update --profile".',
};

suite('an API key confined to profiles', needs('openssl'), () => {
  test('signs only for certificates with its profiles of the same CA, and each rejection is audited', async (t) => {
    const admin = await prepared(t);
    const { key, profiles } = await admin.expect<Key>(201, 'POST', keys, {
      ...signer,
      profiles: ['local-ca/web', 'local-ca/web'],
    });
    assert.deepEqual(profiles, ['local-ca/web']);
    assert.equal(await sign(admin, 'web', key), 202);
    for (const name of ['elsewhere', 'person', 'plain']) {
      assert.deepEqual(await sign(admin, name, key), refusal, name);
    }
    const settings = await admin.expect(200, 'GET', `${certificates}/plain/settings`);
    assert.equal(settings.csr, null);
    assert.deepEqual(
      eventsOf(admin.server.dataDir, 'access.refuse').map(({ resource, detail }) => [resource, detail]),
      ['elsewhere', 'person', 'plain'].map((name) => [
        `POST ${certificates}/${name}/sign`,
        { code: 'forbidden', scope: 'certificates:sign', reason: 'profile' },
      ]),
    );
    const [created] = eventsOf(admin.server.dataDir, 'api_key.create');
    assert.deepEqual(created?.detail.profiles, ['local-ca/web']);
    const whoami = (await (await admin.server.get('/api/v1/whoami', key)).json()) as Key;
    assert.deepEqual(whoami.profiles, ['local-ca/web']);
  });

  test('gains or loses the right to sign immediately when the profiles of the certificate or the key change', async (t) => {
    const admin = await prepared(t);
    const { id, key } = await admin.expect<Key>(201, 'POST', keys, { ...signer, profiles: ['local-ca/web'] });
    await admin.expect(200, 'PATCH', `${certificates}/web`, { profile: 'people' });
    assert.deepEqual(await sign(admin, 'web', key), refusal);
    await admin.expect(200, 'PATCH', `${certificates}/web`, { profile: 'web', issuer: 'other-ca' });
    assert.deepEqual(await sign(admin, 'web', key), refusal);
    const both = ['local-ca/web', 'other-ca/web'];
    const changed = await admin.expect<Key>(200, 'PATCH', `${keys}/${id}`, { profiles: both });
    assert.deepEqual(changed.profiles, both);
    assert.equal(await sign(admin, 'web', key), 202);
    await admin.expect(200, 'PATCH', `${keys}/${id}`, { name: 'renamed' });
    assert.notEqual(await sign(admin, 'plain', key), 202);
    await admin.expect(200, 'PATCH', `${keys}/${id}`, { profiles: [] });
    assert.equal(await sign(admin, 'plain', key), 202);
    await admin.expect(200, 'PATCH', `${keys}/${id}`, { profiles: ['local-ca/web'] });
    assert.deepEqual(await sign(admin, 'plain', key), refusal);
    const befores = eventsOf(admin.server.dataDir, 'api_key.update').map(({ detail }) => detail.before);
    assert.deepEqual(befores, [
      { profiles: ['local-ca/web'] },
      { name: 'signer' },
      { profiles: both },
      { profiles: [] },
    ]);
  });

  test('is rejected as unauthenticated if its profiles are changed in the database', async (t) => {
    const admin = await prepared(t);
    const { key } = await admin.expect<Key>(201, 'POST', keys, { ...signer, profiles: ['local-ca/web'] });
    outside(admin.server.dataDir, (database) =>
      database.prepare("update api_keys set profiles = null, name = name where name = 'signer'").run(),
    );
    const problem = await sign(admin, 'plain', key);
    assert(typeof problem === 'object' && problem.code === 'unauthenticated', JSON.stringify(problem));
  });

  test('blocks deletion of its profiles and their issuers until it is revoked', async (t) => {
    const admin = await prepared(t);
    for (const name of ['web', 'elsewhere']) {
      await admin.expect(204, 'DELETE', `${certificates}/${name}`);
    }
    const profiles = ['local-ca/web', 'other-ca/web'];
    const { id } = await admin.expect<Key>(201, 'POST', keys, { ...signer, profiles });
    const inUse = await admin.expect<Problem>(409, 'DELETE', `${issuers}/local-ca/profiles/web`);
    assert.equal(inUse.code, 'profile_in_use');
    assert.match(
      inUse.detail,
      new RegExp(`^API keys are confined to the profile web of issuer local-ca: ${id} \\(signer\\)\\. `),
    );
    const issuer = await admin.expect<Problem>(400, 'DELETE', `${issuers}/other-ca`);
    assert.match(issuer.detail, /API keys are confined to profiles of the issuer other-ca: \d+ \(signer\)/);
    await admin.expect(200, 'POST', `${keys}/${id}/revoke`, {});
    await admin.expect(204, 'DELETE', `${issuers}/local-ca/profiles/web`);
    await admin.expect(204, 'DELETE', `${issuers}/other-ca`);
  });

  test('requires a right to have certificates issued, and profiles that exist', async (t) => {
    const admin = await prepared(t);
    const refused = async (body: object, message: string) => {
      const { errors } = await admin.expect<Problem>(400, 'POST', keys, { ...signer, ...body });
      assert.equal(errors?.[0]?.message, message);
    };
    const lacking =
      'profiles confine keys that have certificates issued; the key has neither the role operator nor the scope certificates:sign or renewals:trigger';
    await refused({ profiles: ['local-ca/web'], scopes: ['certificates:read'] }, lacking);
    const viewer = { scopes: ['certificates:read'], role: 'viewer' };
    await refused({ profiles: ['local-ca/web'], ...viewer }, lacking);
    await refused(
      { profiles: ['local-ca/web'], role: 'admin' },
      'the role admin may use every profile; use the role operator',
    );
    await refused({ profiles: ['local-ca/x'] }, 'no private CA has the profile "local-ca/x"');
    await refused({ profiles: ['x/web'] }, 'no private CA has the profile "x/web"');
    await refused({ profiles: ['web'] }, 'write a profile with its issuer, such as local-ca/web');
    const { id } = await admin.expect<Key>(201, 'POST', keys, { ...signer, profiles: ['local-ca/web'] });
    const scopes = ['certificates:read'];
    const { errors } = await admin.expect<Problem>(400, 'PATCH', `${keys}/${id}`, { scopes });
    assert.equal(errors?.[0]?.message, lacking);
    await admin.expect(200, 'PATCH', `${keys}/${id}`, { scopes, profiles: [] });
  });

  test('an unconfined key signs for any certificate', async (t) => {
    const admin = await prepared(t);
    const { raw } = await makeKey(admin.server.vault, { name: 'free', scopes: ['certificates:sign'] });
    assert.equal(await sign(admin, 'plain', raw), 202);
    assert.equal(await sign(admin, 'person', raw), 202);
  });
});

test('api-key create and update set the profiles of a key, and export and apply keep them', async (t) => {
  const { done, refused, json, file } = commandLine(t);
  await done(...commandWords('certificate create --name web --domain www.example.test'));
  await done(...commandWords('issuer profile add local-ca web'));
  const create = 'api-key create --name signer --certificate web --profile local-ca/web --scope';
  await refused(
    commandWords(`${create} certificates:read`),
    /^vault: profiles confine keys that have certificates issued; the key has neither the role operator nor /,
  );
  await done(...commandWords(`${create} certificates:sign`));
  const profiles = async () => (await json<Key[]>('api-key', 'list')).map((key) => key.profiles);
  assert.deepEqual(await profiles(), [['local-ca/web']]);
  assert.match((await done('api-key', 'list', '--table')).stdout, /certificates:sign +web +local-ca\/web +/);
  const { stdout } = await done('export');
  assert.match(stdout, /^ {4}profiles:\n {6}- local-ca\/web$/m);
  await done('apply', '--file', file(stdout, 'desired.yaml'), '--yes');
  assert.deepEqual(await profiles(), [['local-ca/web']]);
  await done(...commandWords('api-key update signer --profile none'));
  assert.deepEqual(await profiles(), [[]]);
  await done(...commandWords('api-key update signer --profile local-ca/web'));
  assert.deepEqual(await profiles(), [['local-ca/web']]);
  await refused(
    commandWords('api-key update signer --profile local-ca/wep'),
    'vault: no private CA has the profile "local-ca/wep"\n',
  );
});
