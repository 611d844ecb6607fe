/** CAs and accounts over HTTP against a scripted CA: what is refused says why, and no key is ever seen again. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { problem, type ScriptedAcmeOptions, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { administration } from '../../harness/http/administration.ts';
import { eventsOf, makeKey } from '../../harness/http/fixtures.ts';
import { hastyWorld, memoryZone, withZone, workOn } from '../../harness/issuance/engine-vault.ts';

const path = '/api/v1/issuers';
const hmacKey = Buffer.from('an-hmac-key-of-thirty-two-bytes!').toString('base64url');

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Issuer = { name: string; account: string | null };

async function prepared(t: TestContext, options: ScriptedAcmeOptions = {}) {
  const world = hastyWorld();
  const admin = await administration(t, { world, inPlaceOf: (vault) => withZone(vault, memoryZone()) });
  const ca = await scriptedAcme(t, { now: world.now, ...options });
  const add = (others: object = {}) => ({ name: 'ca', directory_url: ca.directoryUrl, ...others });
  const names = async () => (await admin.expect<Issuer[]>(200, 'GET', path)).map(({ name }) => name);
  return { ...admin, ca, add, names };
}

suite('an ACME CA', () => {
  test('is rejected for invalid settings or a failing directory, with the reason, and not stored', async (t) => {
    const { expect, add, names, ca, server } = await prepared(t, { profiles: { classic: 'as ever' } });
    await expect(400, 'POST', path, { name: 'ca' });
    await expect(400, 'POST', path, add({ name: 'c a' }));
    await expect(400, 'POST', path, add({ directory_url: 'ftp://ca.example.test' }));
    const closed = ca.overrideAll('directory', problem('serverInternal', 'closed on Sundays'));
    assert.match((await expect<Problem>(400, 'POST', path, add())).detail, /closed on Sundays/);
    closed();
    const gone = ca.overrideAll('directory', { status: 404, body: 'no' });
    await expect(400, 'POST', path, add());
    gone();
    const pem = await expect<Problem>(400, 'POST', path, add({ ca_pem: 'nonsense', eab_hmac_key: 'short' }));
    assert.deepEqual(pem.errors?.map(({ path: where }) => where).toSorted(), ['ca_pem', 'eab_hmac_key']);
    const profile = await expect<Problem>(400, 'POST', path, add({ profile: 'fast' }));
    assert.equal(profile.detail, 'ca has no profile "fast". Use one of: classic.');
    const pair = await expect<Problem>(400, 'POST', path, add({ eab_kid: 'me' }));
    assert.equal(
      pair.detail,
      'External account binding needs both a key id and an HMAC key. Pass both "eab_kid" and "eab_hmac_key".',
    );
    assert.deepEqual(await names(), ['local-ca']);
    assert.deepEqual(eventsOf(server.dataDir, 'issuer.create').length, 1, 'that of the private CA');
    assert.doesNotMatch(server.log.lines.join('\n'), /"level":"error"/);
  });

  test('is rejected with the URL of its terms of service until they are accepted', async (t) => {
    const { expect, add, names } = await prepared(t, { termsOfService: 'https://ca.example/terms' });
    const { detail, errors } = await expect<Problem>(400, 'POST', path, add());
    assert.match(detail, /terms of service: https:\/\/ca\.example\/terms /);
    assert.deepEqual(errors, [{ path: 'accept_terms', message: 'https://ca.example/terms' }]);
    const issuer = await expect(201, 'POST', path, add({ accept_terms: true }));
    assert.equal(issuer.terms_of_service, 'https://ca.example/terms');
    assert.deepEqual(await names(), ['ca', 'local-ca']);
    assert.match((await expect<Problem>(400, 'POST', path, add({ accept_terms: true }))).detail, /already/);
  });

  test('does not show its HMAC key in responses or logs', async (t) => {
    const { expect, add, said, server, ask } = await prepared(t, {
      externalAccounts: { me: Buffer.from(hmacKey, 'base64url') },
    });
    assert.match(
      (await expect<Problem>(400, 'POST', path, add())).detail,
      /requires external account binding/,
    );
    const body = add({ eab_kid: 'me', eab_hmac_key: hmacKey, email: 'ops@example.test' });
    const issuer = await expect(201, 'POST', path, body);
    assert.deepEqual([issuer.eab_kid, issuer.email, issuer.account], ['me', 'ops@example.test', null]);
    await ask('GET', '/api/v1/audit-events');
    for (const text of [said(), server.log.lines.join('\n')]) {
      assert(!text.includes(hmacKey) && !text.includes('an-hmac-key'));
    }
  });

  test('clears settings that are null, including its trust root, and keeps omitted ones', async (t) => {
    const { expect, add, server } = await prepared(t, { profiles: { classic: 'as ever' } });
    const root = await (await server.get('/client/ca.crt')).text();
    const settings = {
      profile: 'classic',
      email: 'a@example.test',
      preferred_chain: 'Old Root',
      ca_pem: root,
    };
    const added = await expect(201, 'POST', path, add(settings));
    const shown = ({ profile, email, preferred_chain, ca_pem }: Record<string, unknown>) => ({
      ...{ profile, email, preferred_chain, ca_pem },
    });
    assert.deepEqual(shown(added), settings);
    assert.deepEqual(shown(await expect(200, 'PATCH', `${path}/ca`, {})), settings);
    for (const field of Object.keys(settings)) {
      const changed = await expect(200, 'PATCH', `${path}/ca`, { [field]: null });
      assert.equal(changed[field], null, field);
    }
    const listed = await expect<Record<string, unknown>[]>(200, 'GET', path);
    assert.deepEqual(Object.values(shown(listed[0] ?? {})), [null, null, null, null]);
    await expect(400, 'PATCH', `${path}/ca`, { directory_url: null });
    await expect(400, 'POST', path, add({ name: 'second', email: null }));
    const details = eventsOf(server.dataDir, 'issuer.update').map(({ detail }) => detail);
    assert.deepEqual(details.at(-1), { ca_pem: null });
  });

  test('reports in a test what its directory offers, or why the test failed', async (t) => {
    const { expect, add, ca, server } = await prepared(t, { profiles: { shortlived: 'six days' } });
    await expect(201, 'POST', path, add());
    assert.deepEqual(await expect(200, 'POST', `${path}/ca/test`), {
      directory_url: ca.directoryUrl,
      profiles: [{ name: 'shortlived', description: 'six days' }],
      terms_of_service: null,
      external_account_required: false,
      renewal_information: true,
    });
    ca.overrideAll('directory', problem('serverInternal', 'closed on Sundays'));
    assert.match((await expect<Problem>(400, 'POST', `${path}/ca/test`)).detail, /closed on Sundays/);
    assert.match((await expect<Problem>(400, 'POST', `${path}/local-ca/test`)).detail, /not an ACME CA/);
    assert.equal((await expect<Problem>(404, 'POST', `${path}/absent/test`)).code, 'not_found');
    assert.deepEqual(eventsOf(server.dataDir, 'issuer.update'), []);
  });

  test('is changed, and deleted once it is unused', async (t) => {
    const { expect, add, names, server } = await prepared(t);
    await expect(201, 'POST', path, add({ email: 'a@example.test' }));
    const changed = await expect(200, 'PATCH', `${path}/ca`, { email: 'b@example.test' });
    assert.equal(changed.email, 'b@example.test');
    await expect(400, 'PATCH', `${path}/ca`, { name: 'other' });
    const other = await expect<Problem>(400, 'PATCH', `${path}/local-ca`, { email: 'a@example.test' });
    assert.equal(other.detail, 'email: is a setting of ACME CAs.');
    for (const method of ['PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? {} : undefined;
      assert.equal((await expect<Problem>(404, method, `${path}/absent`, body)).code, 'not_found');
    }
    const certificate = { name: 'www', domains: ['www.example.test'], issuer: 'ca' };
    await expect(201, 'POST', '/api/v1/certificates', certificate);
    const used = await expect<Problem>(400, 'DELETE', `${path}/ca`);
    assert.equal(used.detail, 'Certificates use the issuer ca: www.');
    assert.match((await expect<Problem>(400, 'DELETE', `${path}/local-ca`)).detail, /cannot be removed/);
    await expect(204, 'DELETE', '/api/v1/certificates/www');
    await expect(204, 'DELETE', `${path}/ca`);
    assert.deepEqual(await names(), ['local-ca']);
    const actions = ['issuer.update', 'issuer.delete'].flatMap((action) => eventsOf(server.dataDir, action));
    assert.deepEqual(
      actions.map(({ actor, resource }) => [actor, resource]),
      [
        ['admin:alice', 'issuer:ca'],
        ['admin:alice', 'issuer:ca'],
      ],
    );
  });
});

suite('a certificate from a CA', () => {
  async function issued(t: TestContext) {
    const opened = await prepared(t);
    const { expect, add, server } = opened;
    await expect(201, 'POST', path, add());
    const wanted = { name: 'www', domains: ['www.example.test'], issuer: 'ca' };
    await expect(201, 'POST', '/api/v1/certificates', wanted);
    assert.equal((await workOn(server.vault)).status, 'succeeded');
    return opened;
  }

  test('has a renewal history with steps, which an API key cannot list', async (t) => {
    const { expect, server } = await issued(t);
    type Detail = { id: number; status: string; issuer: string; steps: { at: string; text: string }[] };
    for (const list of [
      '/api/v1/renewals',
      '/api/v1/certificates/www/renewals',
      '/api/v1/renewals?certificate=www',
    ]) {
      const [renewal, ...others] = await expect<Detail[]>(200, 'GET', list);
      assert.deepEqual([renewal?.status, renewal?.issuer, others.length], ['succeeded', 'ca', 0], list);
      assert((renewal?.steps.length ?? 0) > 2);
      assert.deepEqual(await expect(200, 'GET', `/api/v1/renewals/${renewal?.id}`), renewal);
    }
    assert.deepEqual(await expect(200, 'GET', '/api/v1/renewals?status=failed'), []);
    await expect(404, 'GET', '/api/v1/renewals?certificate=absent');
    await expect(404, 'GET', '/api/v1/renewals/9');
    await expect(404, 'GET', '/api/v1/renewals/x');
    await expect(400, 'GET', '/api/v1/renewals?status=fine');
    const { raw } = await makeKey(server.vault);
    assert.equal((await server.get('/api/v1/renewals', raw)).status, 403);
  });

  test('reports why the CA rejected its revocation, and is queued for renewal once revoked', async (t) => {
    const { expect, ca, server } = await issued(t);
    const revoke = '/api/v1/certificates/www/revoke';
    ca.override('revokeCert', problem('badRevocationReason', 'we need a better one'));
    const refused = await expect<Problem>(400, 'POST', revoke, { reason: 'superseded' });
    assert.match(refused.detail, /we need a better one/);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.revoke'), []);
    const done = await expect(200, 'POST', revoke, { reason: 'keyCompromise', version: 1 });
    assert.equal(done.version, 1);
    const queued = await expect<{ id: number }[]>(200, 'GET', '/api/v1/renewals?status=queued');
    assert.deepEqual(
      queued.map(({ id }) => id),
      [done.renewal],
    );
    assert.equal(eventsOf(server.dataDir, 'certificate.revoke')[0]?.actor, 'admin:alice');
  });

  test('comes from an account whose key rollover and deactivation are recorded', async (t) => {
    const { expect, ca, server } = await issued(t);
    const account = '/api/v1/acme-accounts/1';
    ca.override('keyChange', problem('rateLimited', 'not today'));
    assert.match((await expect<Problem>(400, 'POST', `${account}/rollover`)).detail, /Not today/);
    await expect(204, 'POST', `${account}/rollover`);
    await expect(204, 'POST', `${account}/deactivate`);
    const [row] = await expect<{ status: string }[]>(200, 'GET', '/api/v1/acme-accounts');
    assert.equal(row?.status, 'deactivated');
    for (const action of ['rollover', 'deactivate']) {
      await expect(404, 'POST', `/api/v1/acme-accounts/9/${action}`);
      const [event] = eventsOf(server.dataDir, `acme_account.${action}`);
      assert.deepEqual([event?.actor, event?.resource], ['admin:alice', 'acme-account:1']);
    }
  });
});
