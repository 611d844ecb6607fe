/** Profiles of private CAs over HTTP: what certificates have and may have, at their creation and at each issuance. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { opensslKeys, opensslRequest } from '../../harness/ca/openssl-requests.ts';
import { makeAccount, makeIssuer } from '../../harness/http/acme-fixtures.ts';
import { type Administration, administration } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const issuers = '/api/v1/issuers';
const profiles = `${issuers}/local-ca/profiles`;
const certificates = '/api/v1/certificates';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Version = { not_before: string; not_after: string; key_type: string };

const web = {
  name: 'web',
  usage: 'server',
  key_types: ['ec384', 'ec256'],
  lifetime: '7d',
  max_lifetime: '30d',
  subject: ['O=Example'],
  name_types: ['dns', 'ip'],
  permit_domains: ['internal.example'],
  permit_ips: ['10.0.0.0/8'],
};

async function prepared(t: TestContext) {
  const admin = await administration(t);
  await admin.expect(201, 'POST', profiles, web);
  const create = (status: number, body: object) =>
    admin.expect<Problem>(status, 'POST', certificates, {
      ...{ name: 'www', profile: 'web', domains: ['www.internal.example'] },
      ...body,
    });
  const change = (status: number, body: object, name = 'www') =>
    admin.expect<Problem>(status, 'PATCH', `${certificates}/${name}`, body);
  return { ...admin, create, change };
}

/** Key type, hours of validity, extended usages and subject of the current version. */
async function factsOf({ ask, expect }: Administration, name: string) {
  const [version] = await expect<Version[]>(200, 'GET', `${certificates}/${name}/versions`);
  assert(version);
  const leaf = new X509Certificate((await ask('GET', `${certificates}/${name}/certificate.crt`)).text);
  return {
    key: version.key_type,
    hours: (Date.parse(version.not_after) - Date.parse(version.not_before)) / 3_600_000,
    usages: leaf.keyUsage,
    subject: leaf.subject,
  };
}

/** Renews the certificate; returns the error of the renewal, if it fails. */
async function renewed({ server, expect }: Administration, name: string): Promise<string | null> {
  const { id } = await expect<{ id: number }>(202, 'POST', `${certificates}/${name}/renew`);
  const claimed = await claimRenewal(server.vault, 'test');
  assert(claimed);
  await runRenewal(server.vault, claimed, new AbortController().signal);
  const { error } = await expect<{ error: string | null }>(
    200,
    'GET',
    `${certificates}/${name}/renewals/${id}`,
  );
  return error;
}

const serverAuth = '1.3.6.1.5.5.7.3.1';
const clientAuth = '1.3.6.1.5.5.7.3.2';

suite('a certificate with a profile', () => {
  test('uses key type, lifetime, usage and subject of the profile by default', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, {});
    assert.deepEqual(await factsOf(admin, 'www'), {
      ...{ key: 'ec384', hours: 7 * 24, usages: [serverAuth] },
      subject: 'O=Example\nCN=www.internal.example',
    });
    const settings = await admin.expect(200, 'GET', `${certificates}/www/settings`);
    assert.deepEqual(
      [settings.profile, settings.usage, settings.subject, settings.lifetime],
      ['web', 'server', ['O=Example'], null],
    );
    const [event] = eventsOf(admin.server.dataDir, 'certificate.create');
    assert.equal(event?.detail.profile, 'web');
    assert.equal(await renewed(admin, 'www'), null);
    assert.deepEqual(await factsOf(admin, 'www'), {
      ...{ key: 'ec384', hours: 7 * 24, usages: [serverAuth] },
      subject: 'O=Example\nCN=www.internal.example',
    });
  });

  test('keeps its own settings that the profile permits', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, {
      ...{
        key_type: 'ec256',
        lifetime: '30d',
        usage: 'server',
        subject: ['O=Example', 'CN=web.internal.example'],
      },
      domains: ['10.1.2.3'],
    });
    const { key, hours, subject } = await factsOf(admin, 'www');
    assert.deepEqual([key, hours, subject], ['ec256', 30 * 24, 'O=Example\nCN=web.internal.example']);
  });

  test('is rejected for settings the profile does not permit, with the permitted values', async (t) => {
    const { create, expect, change } = await prepared(t);
    const cases: [string, Record<string, unknown>, string][] = [
      ['usage', { usage: 'client' }, 'the usage client; it permits server'],
      ['usage', { usage: 'both' }, 'the usage both; it permits server'],
      ['key_type', { key_type: 'rsa2048' }, 'the key type rsa2048; it permits ec384, ec256'],
      ['lifetime', { lifetime: '31d' }, 'a lifetime of 31d; it permits up to 30d'],
      ['subject', { subject: ['O=Other'] }, 'O=Other; it permits O=Example'],
      [
        'emails',
        { emails: ['a@internal.example'] },
        'a@internal.example; it permits only DNS names, IP addresses',
      ],
      [
        'uris',
        { uris: ['spiffe://internal.example/web'] },
        'spiffe://internal.example/web; it permits only DNS names, IP addresses',
      ],
      [
        'domains',
        { domains: ['www.example.com'] },
        'www.example.com; it permits internal.example and names below it, 10.0.0.0/8',
      ],
      [
        'domains',
        { domains: ['192.0.2.1'] },
        '192.0.2.1; it permits internal.example and names below it, 10.0.0.0/8',
      ],
    ];
    for (const [path, body, what] of cases) {
      const { code, detail, errors } = await create(400, body);
      const message = `profile web of issuer local-ca does not permit ${what}`;
      assert.equal(code, 'invalid_request');
      assert(detail.startsWith(`P${message.slice(1)}. Change the certificate, or the profile`), detail);
      assert.deepEqual(errors, [{ path, message }]);
    }
    assert.deepEqual(await expect(200, 'GET', certificates), []);
    await create(201, {});
    for (const [path, body, what] of cases) {
      const { errors } = await change(400, body);
      assert.deepEqual(errors, [{ path, message: `profile web of issuer local-ca does not permit ${what}` }]);
    }
    await create(400, { name: 'off', disabled: true, usage: 'client' });
  });

  test(
    'is rejected for a CSR with a key type that the profile does not permit',
    needs('openssl'),
    async (t) => {
      const { create, change } = await prepared(t);
      const { csr } = opensslRequest({ key: opensslKeys.rsa2048, names: 'DNS:www.internal.example' });
      assert.match((await create(400, { csr })).detail, /does not permit the key type rsa2048/);
      await create(201, { csr: opensslRequest({ names: 'DNS:www.internal.example' }).csr });
      assert.match((await change(400, { csr })).detail, /does not permit the key type rsa2048/);
    },
  );

  test('is rejected with a profile that the issuer does not have, or with a fallback issuer', async (t) => {
    const admin = await prepared(t);
    await admin.expect(201, 'POST', issuers, { type: 'local-ca', name: 'other-ca' });
    const unknown = await admin.create(400, { profile: 'wep' });
    assert.deepEqual(unknown.errors, [{ path: 'profile', message: 'issuer local-ca has no profile "wep"' }]);
    assert.match(unknown.detail, /Did you mean "web"\?$/);
    const ofAnother = await admin.create(400, { issuer: 'other-ca' });
    assert.match(ofAnother.detail, /^Issuer other-ca has no profile "web"\. Add it with /);
    const spare = await admin.create(400, { fallback_issuer: 'other-ca' });
    assert.match(spare.detail, /^A certificate with profile web of issuer local-ca has no fallback issuer/);
    await admin.create(201, {});
    await admin.change(400, { fallback_issuer: 'other-ca' });
    assert.match((await admin.change(400, { issuer: 'other-ca' })).detail, /other-ca has no profile "web"/);
    await admin.change(200, { issuer: 'other-ca', profile: null });
  });

  test('accepts a profile later only if its settings are permitted by it', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, { name: 'old', profile: undefined, key_type: 'ed25519' });
    const { detail } = await admin.change(400, { profile: 'web' }, 'old');
    assert.match(detail, /^Profile web of issuer local-ca does not permit the key type ed25519/);
    await admin.change(200, { profile: 'web', key_type: 'ec256' }, 'old');
    assert.equal(await renewed(admin, 'old'), null);
    const { usages, hours } = await factsOf(admin, 'old');
    assert.deepEqual([usages, hours], [[serverAuth], 7 * 24]);
    await admin.change(200, { profile: null }, 'old');
    assert.equal(await renewed(admin, 'old'), null);
    assert.deepEqual((await factsOf(admin, 'old')).usages, [serverAuth, clientAuth]);
  });

  test('is not changed by a repeated PUT that takes the key type from the profile', async (t) => {
    const { expect } = await prepared(t);
    const body = { domains: ['www.internal.example'], profile: 'web' };
    assert.equal((await expect(201, 'PUT', `${certificates}/www`, body)).changed, true);
    assert.equal((await expect(200, 'PUT', `${certificates}/www`, body)).changed, false);
  });
});

suite('a change of a profile', () => {
  test('takes effect at the next issuance, and a failed renewal reports the profile', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, { lifetime: '20d' });
    await admin.expect(200, 'PATCH', `${profiles}/web`, { lifetime: '1d', max_lifetime: '2d' });
    const message =
      'Profile web of issuer local-ca does not permit a lifetime of 20d; it permits up to 2d. Change the certificate, or the profile with "vault issuer profile update".';
    assert.equal(await renewed(admin, 'www'), message);
    const { last_error } = await admin
      .expect<{ renewal: { last_error: string } }>(200, 'GET', `${certificates}/www`)
      .then(({ renewal }) => renewal);
    assert.equal(last_error, message);
    await admin.change(200, { auto_renew: false });
    await admin.change(200, { lifetime: null });
    assert.equal(await renewed(admin, 'www'), null);
    assert.equal((await factsOf(admin, 'www')).hours, 24);
    await admin.expect(200, 'PATCH', `${profiles}/web`, { key_types: ['ed25519'] });
    assert.match((await renewed(admin, 'www')) ?? '', /^Profile web .* does not permit the key type ec384;/);
  });

  test('applies the CA default lifetime, capped at max_lifetime, when it clears the lifetime', async (t) => {
    const admin = await prepared(t);
    await admin.expect(200, 'PATCH', `${profiles}/web`, { lifetime: null });
    await admin.create(201, {});
    assert.equal((await factsOf(admin, 'www')).hours, 30 * 24);
    await admin.expect(200, 'PATCH', `${profiles}/web`, { max_lifetime: null });
    assert.equal(await renewed(admin, 'www'), null);
    assert.equal((await factsOf(admin, 'www')).hours, 90 * 24);
  });

  test('clears fields that are null, and is recorded like creation and deletion', async (t) => {
    const { expect, server } = await prepared(t);
    const before = await expect(200, 'GET', `${profiles}/web`);
    const { created_at, ...settings } = before;
    assert.deepEqual(settings, { issuer: 'local-ca', ...web });
    assert.deepEqual(await expect(200, 'GET', profiles), [before]);
    const cleared = {
      ...{ usage: null, key_types: null, lifetime: null, max_lifetime: null, subject: null },
      ...{ name_types: null, permit_domains: null, permit_ips: null },
    };
    const lists = { key_types: [], subject: [], name_types: [], permit_domains: [], permit_ips: [] };
    assert.deepEqual(await expect(200, 'PATCH', `${profiles}/web`, cleared), {
      ...{ issuer: 'local-ca', name: 'web', created_at, ...cleared, ...lists },
    });
    await expect(204, 'DELETE', `${profiles}/web`);
    const actions = ['issuer.profile_create', 'issuer.profile_update', 'issuer.profile_delete'];
    const events = actions.flatMap((action) => eventsOf(server.dataDir, action));
    assert.deepEqual(
      events.map(({ action, actor, resource }) => [action, actor, resource]),
      actions.map((action) => [action, 'admin:alice', 'issuer:local-ca/web']),
    );
  });
});

suite('profiles', () => {
  test('are rejected if invalid, duplicate or unknown, or without credentials', async (t) => {
    const { expect, server } = await prepared(t);
    const cases: [string, object, RegExp][] = [
      ['name', { name: 'a b' }, /a name of a profile has up to 64 letters/],
      ['usage', { usage: 'peer' }, /"peer" is not a usage/],
      ['key_types.0', { key_types: ['rsa1024'] }, /"rsa1024" is not a key type/],
      ['lifetime', { lifetime: '1m' }, /"1m" is not a lifetime/],
      ['lifetime', { lifetime: '8d', max_lifetime: '7d' }, /is not longer than its longest one/],
      ['subject.0', { subject: ['X=1'] }, /is not a field of a subject/],
      [
        'name_types.0',
        { name_types: ['ipv4'] },
        /"ipv4" is not a kind of name: use one of dns, ip, email, uri/,
      ],
      ['permit_domains.0', { permit_domains: ['*.x.example'] }, /is not a domain such as/],
    ];
    for (const [path, body, message] of cases) {
      const { errors } = await expect<Problem>(400, 'POST', profiles, { name: 'bad', ...body });
      assert.equal(errors?.[0]?.path, path);
      assert.match(errors?.[0]?.message ?? '', message);
    }
    const twice = await expect<Problem>(409, 'POST', profiles, web);
    assert.equal(twice.code, 'profile_exists');
    await expect(400, 'PATCH', `${profiles}/web`, { lifetime: '31d' });
    for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
      const { code, detail } = await expect<Problem>(404, method, `${profiles}/wep`, body);
      assert.deepEqual(
        [code, detail],
        ['not_found', 'Issuer local-ca has no profile "wep". Did you mean "web"?'],
      );
      await expect(404, method, `${issuers}/nothing/profiles/web`, body);
    }
    await expect(404, 'GET', `${issuers}/nothing/profiles`);
    assert.equal((await server.get(profiles)).status, 403);
  });

  test('have separate names in each CA, and are removed with the CA', async (t) => {
    const { expect } = await prepared(t);
    await expect(201, 'POST', issuers, { type: 'local-ca', name: 'other-ca' });
    await expect(201, 'POST', `${issuers}/other-ca/profiles`, { name: 'web', usage: 'client' });
    const names = [];
    for (const name of ['b', 'a']) await expect(201, 'POST', `${issuers}/other-ca/profiles`, { name });
    for (const { name } of await expect<{ name: string }[]>(200, 'GET', `${issuers}/other-ca/profiles`)) {
      names.push(name);
    }
    assert.deepEqual(names, ['a', 'b', 'web']);
    await expect(204, 'DELETE', `${issuers}/other-ca`);
    await expect(201, 'POST', issuers, { type: 'local-ca', name: 'other-ca' });
    assert.deepEqual(await expect(200, 'GET', `${issuers}/other-ca/profiles`), []);
  });

  test('cannot be added to an ACME CA, and are cleared when a certificate moves to one', async (t) => {
    const admin = await prepared(t);
    const account = await makeAccount(admin.server.vault, { email: null });
    await makeIssuer(admin.server.vault, 'acme', account);
    assert.deepEqual(await admin.expect(200, 'GET', `${issuers}/acme/profiles`), []);
    await admin.expect(404, 'GET', `${issuers}/acme/profiles/web`);
    const { detail } = await admin.expect<Problem>(400, 'POST', `${issuers}/acme/profiles`, web);
    assert.match(detail, /^Issuer acme is an ACME CA, which has its own profiles\. Only private CAs take/);
    await admin.create(201, {});
    await admin.change(200, { issuer: 'acme', lifetime: null });
    const settings = await admin.expect(200, 'GET', `${certificates}/www/settings`);
    assert.deepEqual([settings.issuer, settings.profile], ['acme', null]);
  });

  test('cannot be deleted while certificates use them', async (t) => {
    const { create, change, expect } = await prepared(t);
    await create(201, {});
    const { code, detail } = await expect<Problem>(409, 'DELETE', `${profiles}/web`);
    assert.equal(code, 'profile_in_use');
    assert.match(detail, /^Certificates have the profile web of issuer local-ca: www\. /);
    await change(200, { profile: null });
    await expect(204, 'DELETE', `${profiles}/web`);
    assert.match((await change(400, { profile: 'web' })).detail, /^Issuer local-ca has no profile "web"/);
  });

  test('missing when a deleted certificate is restored make its renewal fail', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, {});
    await admin.expect(204, 'DELETE', `${certificates}/www`);
    await admin.expect(204, 'DELETE', `${profiles}/web`);
    const [deleted] = await admin.expect<{ id: number }[]>(200, 'GET', '/api/v1/deleted-certificates');
    await admin.expect(200, 'POST', `/api/v1/deleted-certificates/${deleted?.id}/restore`, {});
    assert.match((await renewed(admin, 'www')) ?? '', /^Issuer local-ca has no profile "web"\. Add it with /);
  });
});
