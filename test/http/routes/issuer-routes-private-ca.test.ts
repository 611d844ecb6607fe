/**
 * Private CAs over HTTP: each has its own root, issues only what it permits, and is destroyed only when nothing uses
 * it.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { keyTypes } from '../../../src/base/key-type.ts';
import { opensslSays, pemFile } from '../../harness/ca/private-chain.ts';
import { type Administration, administration } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const path = '/api/v1/issuers';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Issuer = { name: string; type: string; private_ca: Record<string, unknown> | null };
type Version = { not_before: string; not_after: string; key_type: string; version: number };

const staging = {
  type: 'local-ca',
  name: 'staging-ca',
  permit_domains: ['staging.example'],
  permit_ips: ['10.0.0.0/8', '2001:db8::/32'],
  lifetime: '30d',
  key_type: 'ec384',
};

async function prepared(t: TestContext) {
  const admin = await administration(t);
  await admin.expect(201, 'POST', path, staging);
  const create = (status: number, body: Record<string, unknown>) =>
    admin.expect<Problem>(status, 'POST', '/api/v1/certificates', { issuer: 'staging-ca', ...body });
  return { ...admin, create };
}

const chainOf = async ({ ask }: Administration, name: string) => {
  const { text } = await ask('GET', `/api/v1/certificates/${name}/fullchain.crt`);
  return text.split(/(?<=-----END CERTIFICATE-----\n)/).map((pem) => new X509Certificate(pem));
};

const rootOf = async ({ ask }: Administration, name: string) => {
  const { status, text } = await ask('GET', `/client/cas/${name}/ca.crt`);
  assert.equal(status, 200, text);
  return new X509Certificate(text);
};

/** What OpenSSL says at its strictest about the certificate of this name, under the root of this CA. */
async function verified(admin: Administration, name: string, ca: string): Promise<string> {
  const [leaf, intermediate] = await chainOf(admin, name);
  const root = await rootOf(admin, ca);
  assert(leaf && intermediate);
  const given = ['-CAfile', pemFile(root.raw), '-untrusted', pemFile(intermediate.raw), pemFile(leaf.raw)];
  return opensslSays('verify', '-x509_strict', '-no-CApath', '-no-CAstore', ...given);
}

suite('a private CA beside the built-in one', () => {
  test('is shown with its settings and has a root of its own', async (t) => {
    const admin = await prepared(t);
    const { private_ca, type } = await admin
      .expect<Issuer[]>(200, 'GET', path)
      .then((all) => all.find(({ name }) => name === 'staging-ca') ?? assert.fail());
    assert.equal(type, 'local-ca');
    assert.deepEqual(private_ca, {
      common_name: null,
      permit_domains: ['staging.example'],
      permit_ips: ['10.0.0.0/8', '2001:db8::/32'],
      path_length: 1,
      lifetime: '30d',
      key_type: 'ec384',
    });
    const own = await rootOf(admin, 'staging-ca');
    const builtIn = await rootOf(admin, 'local-ca');
    assert(own.verify(own.publicKey) && !own.verify(builtIn.publicKey));
    assert.equal((await admin.ask('GET', '/client/ca.crt')).text, builtIn.toString());
    const [event] = eventsOf(admin.server.dataDir, 'issuer.create').slice(-1);
    assert.equal(event?.resource, 'issuer:staging-ca');
  });

  test('issues with its own default lifetime and key type, unless others are given', async (t) => {
    const admin = await prepared(t);
    await admin.create(201, { name: 'usual', domains: ['www.staging.example'] });
    await admin.create(201, {
      ...{ name: 'other', domains: ['www.staging.example'] },
      ...{ lifetime: '2h', key_type: 'ed25519' },
    });
    const facts = async (name: string) => {
      const [version] = await admin.expect<Version[]>(200, 'GET', `/api/v1/certificates/${name}/versions`);
      assert(version);
      return [version.key_type, (Date.parse(version.not_after) - Date.parse(version.not_before)) / 3_600_000];
    };
    assert.deepEqual(await facts('usual'), ['ec384', 720]);
    assert.deepEqual(await facts('other'), ['ed25519', 2]);
  });

  test(
    'issues certificates that pass strict OpenSSL verification, with each key type except rsa4096',
    needs('openssl'),
    async (t) => {
      const admin = await prepared(t);
      for (const key_type of keyTypes.filter((type) => type !== 'rsa4096')) {
        await admin.create(201, {
          name: key_type,
          key_type,
          domains: [`${key_type}.staging.example`, '10.1.2.3'],
        });
        assert.match(await verified(admin, key_type, 'staging-ca'), /: OK$/);
        await assert.rejects(verified(admin, key_type, 'local-ca'), /unable to get (local )?issuer/);
      }
      await admin.create(201, {
        ...{ name: 'workload', usage: 'client', subject: ['CN=alice', 'O=Example'] },
        ...{ uris: ['spiffe://staging.example/billing'], emails: ['alice@mail.staging.example'] },
      });
      assert.match(await verified(admin, 'workload', 'staging-ca'), /: OK$/);
    },
  );

  test('has its own revocation lists', needs('openssl'), async (t) => {
    const admin = await prepared(t);
    await admin.create(201, { name: 'web', domains: ['www.staging.example'] });
    const bytes = async (where: string) => {
      const response = await admin.server.get(where);
      assert.equal(response.status, 200, where);
      return Buffer.from(await response.arrayBuffer());
    };
    const before = await bytes('/client/cas/staging-ca/ca.crl');
    assert.notDeepEqual(before, await bytes('/client/ca.crl'));
    assert.deepEqual(await bytes('/client/cas/local-ca/ca.crl'), await bytes('/client/ca.crl'));
    assert.deepEqual(await bytes('/client/cas/local-ca/ca-crls.pem'), await bytes('/client/ca-crls.pem'));
    await admin.expect(200, 'POST', '/api/v1/certificates/web/revoke', {
      reason: 'keyCompromise',
    });
    assert((await bytes('/client/cas/staging-ca/ca.crl')).length > before.length);
    const lists = (await bytes('/client/cas/staging-ca/ca-crls.pem')).toString();
    assert.equal(lists.match(/BEGIN X509 CRL/g)?.length, 2);
  });

  test('returns 404 for root and CRL paths with an unknown, malformed or ACME CA name', async (t) => {
    const { ask, server } = await prepared(t);
    await silentIssuer(server.vault, 'acme');
    for (const file of ['ca.crt', 'ca.crl', 'ca-crls.pem']) {
      for (const name of ['nothing', 'acme', '%00', 'staging-ca%2F', 'x'.repeat(400)]) {
        assert.equal((await ask('GET', `/client/cas/${name}/${file}`)).status, 404, `${name}/${file}`);
      }
    }
  });

  test('takes a common name and a path length into its root', needs('openssl'), async (t) => {
    const admin = await prepared(t);
    const body = { type: 'local-ca', name: 'deep', common_name: 'Example Deep CA', path_length: 3 };
    await admin.expect(201, 'POST', path, body);
    const root = await rootOf(admin, 'deep');
    assert.equal(root.subject, 'CN=Example Deep CA');
    const text = opensslSays('x509', '-in', pemFile(root.raw), '-noout', '-ext', 'basicConstraints');
    // One more, for the link to its successor.
    assert.match(text, /CA:TRUE, pathlen:4$/);
    await admin.create(201, { name: 'web', domains: ['web.example.com'], issuer: 'deep' });
    assert.match(await verified(admin, 'web', 'deep'), /: OK$/);
    const [, intermediate] = await chainOf(admin, 'web');
    assert.match(intermediate?.subject ?? '', /^CN=Example Deep CA Intermediate [0-9a-f]{8}$/);
  });
});

suite('a private CA with constraints', () => {
  test('rejects other names, and reports the name and what the CA permits', async (t) => {
    const { create, expect } = await prepared(t);
    const cases: [string, Record<string, unknown>, string][] = [
      ['domains', { domains: ['www.staging.example', 'www.example.com'] }, 'www.example.com'],
      ['domains', { domains: ['*.example.com'] }, '*.example.com'],
      ['domains', { domains: ['192.0.2.1'] }, '192.0.2.1'],
      ['uris', { uris: ['spiffe://prod.example/web'] }, 'spiffe://prod.example/web'],
      ['uris', { uris: ['urn:example:1'] }, 'urn:example:1'],
      ['emails', { emails: ['a@example.com'] }, 'a@example.com'],
      ['subject', { subject: ['CN=www.example.com'] }, 'CN=www.example.com'],
    ];
    for (const [setting, names, name] of cases) {
      const { code, detail, errors } = await create(400, { name: 'web', ...names });
      assert.equal(code, 'invalid_request');
      const message = `issuer staging-ca does not permit ${name}; it permits staging.example and names below it, 10.0.0.0/8, 2001:db8::/32`;
      assert.equal(detail, `I${message.slice(1)}.`);
      assert.deepEqual(errors, [{ path: setting, message }]);
    }
    assert.deepEqual(await expect(200, 'GET', '/api/v1/certificates'), []);
  });

  test('is rejected as issuer and fallback issuer for names it does not permit', async (t) => {
    const { create, expect } = await prepared(t);
    await create(201, { name: 'web', domains: ['web.staging.example'] });
    await create(201, { name: 'out', domains: ['web.example.com'], issuer: 'local-ca' });
    const refused = async (name: string, body: object) => {
      const { detail } = await expect<Problem>(400, 'PATCH', `/api/v1/certificates/${name}`, body);
      assert.match(detail, /^Issuer staging-ca does not permit web\.example\.com; it permits /);
    };
    await refused('web', { domains: ['web.staging.example', 'web.example.com'] });
    await refused('out', { issuer: 'staging-ca' });
    await refused('out', { fallback_issuer: 'staging-ca' });
    const body = {
      name: 'x',
      domains: ['web.example.com'],
      issuer: 'local-ca',
      fallback_issuer: 'staging-ca',
    };
    await create(400, body);
    await expect(200, 'PATCH', '/api/v1/certificates/web', { domains: ['db.staging.example'] });
  });
});

suite('a change of constraints', () => {
  test(
    'takes effect at the next issuance, and certificates before stay valid',
    needs('openssl'),
    async (t) => {
      const admin = await administration(t);
      const create = (status: number, name: string, ...domains: string[]) =>
        admin.expect(status, 'POST', '/api/v1/certificates', { name, domains });
      await create(201, 'before', 'a.staging.example');
      await admin.expect(200, 'PATCH', `${path}/local-ca`, { permit_domains: ['staging.example'] });
      assert.equal((await admin.ask('GET', '/client/ca.crl')).status, 200);
      await create(201, 'after', 'b.staging.example');
      await create(400, 'outside', 'www.example.com');
      const [[, old], [, fresh]] = await Promise.all([chainOf(admin, 'before'), chainOf(admin, 'after')]);
      assert(old && fresh && old.fingerprint256 !== fresh.fingerprint256);
      const constraints = (one: X509Certificate) =>
        opensslSays('x509', '-in', pemFile(one.raw), '-noout', '-text').includes(
          'Name Constraints: critical',
        );
      assert.deepEqual([constraints(old), constraints(fresh)], [false, true]);
      for (const name of ['before', 'after']) assert.match(await verified(admin, name, 'local-ca'), /: OK$/);
      // The root of the built-in CA permits any name, so the constraints can be lifted.
      const lifted = await admin.expect<Issuer>(200, 'PATCH', `${path}/local-ca`, { permit_domains: null });
      assert.deepEqual(lifted.private_ca?.permit_domains, []);
      await create(201, 'outside', 'www.example.com');
      const [, again] = await chainOf(admin, 'outside');
      assert.equal(again?.fingerprint256, old.fingerprint256, 'the intermediate without constraints');
    },
  );

  test('is rejected if renewals would fail, lists those certificates, and can be forced', async (t) => {
    const { expect, server } = await prepared(t);
    const domains = ['www.example.com'];
    await expect(201, 'POST', '/api/v1/certificates', { name: 'shop', domains });
    await expect(201, 'POST', '/api/v1/certificates', { name: 'inside', domains: ['a.staging.example'] });
    await expect(201, 'POST', '/api/v1/certificates', {
      ...{ name: 'spare', domains: ['a.staging.example'], issuer: 'staging-ca', fallback_issuer: 'local-ca' },
    });
    const change = { permit_domains: ['staging.example'] };
    const { detail, errors } = await expect<Problem>(400, 'PATCH', `${path}/local-ca`, change);
    assert.match(
      detail,
      /^Certificates that local-ca renews have other names: shop \(www\.example\.com\)\. /,
    );
    assert.equal(errors?.[0]?.path, 'permit_domains');
    await expect(200, 'PATCH', `${path}/local-ca`, { ...change, force: true });
    // Settings other than names can still be changed.
    await expect(200, 'PATCH', '/api/v1/certificates/shop', { auto_renew: false });
    const { id } = await expect<{ id: string }>(202, 'POST', '/api/v1/certificates/shop/renew');
    assert.ok(id);
    assert.equal(eventsOf(server.dataDir, 'issuer.update').length, 1);
  });

  test('cannot permit what the root does not', async (t) => {
    const { expect } = await prepared(t);
    for (const body of [
      { permit_domains: null, permit_ips: null },
      { permit_domains: ['example'] },
      { permit_ips: ['0.0.0.0/0'] },
    ]) {
      const { detail } = await expect<Problem>(400, 'PATCH', `${path}/staging-ca`, body);
      assert.match(
        detail,
        /^The root of staging-ca permits only staging\.example and names below it, 10\.0\.0\.0\/8/,
      );
    }
    const narrower = {
      permit_domains: ['eu.staging.example'],
      permit_ips: [],
      lifetime: '1d',
      key_type: null,
    };
    const { private_ca } = await expect<Issuer>(200, 'PATCH', `${path}/staging-ca`, narrower);
    assert.deepEqual(
      [private_ca?.permit_domains, private_ca?.permit_ips, private_ca?.lifetime, private_ca?.key_type],
      [['eu.staging.example'], [], '1d', 'ec256'],
    );
  });

  test('rejects ACME settings for a private CA, and constraints for an ACME CA', async (t) => {
    const { expect, server } = await prepared(t);
    const { errors } = await expect<Problem>(400, 'PATCH', `${path}/staging-ca`, { email: 'a@example.com' });
    assert.deepEqual(errors, [{ path: 'email', message: 'is a setting of ACME CAs' }]);
    await expect(400, 'PATCH', `${path}/staging-ca`, { accept_terms: true });
    await silentIssuer(server.vault, 'acme');
    for (const setting of ['permit_domains', 'permit_ips']) {
      const refused = await expect<Problem>(400, 'PATCH', `${path}/acme`, { [setting]: [] });
      assert.deepEqual(refused.errors, [{ path: setting, message: 'is a setting of private CAs' }]);
    }
  });
});

suite('creating a private CA', () => {
  test('is rejected with the path of the invalid setting, or if the name exists', async (t) => {
    const { expect } = await prepared(t);
    const cases: [object, string][] = [
      [{ type: 'ca' }, 'type'],
      [{ permit_domains: ['*.example.com'] }, 'permit_domains.0'],
      [{ permit_domains: ['10.0.0.1'] }, 'permit_domains.0'],
      [{ permit_domains: Array.from({ length: 101 }, (_, n) => `a${n}.example`) }, 'permit_domains'],
      [{ permit_ips: ['10.0.0.1/8'] }, 'permit_ips.0'],
      [{ permit_ips: ['*'] }, 'permit_ips.0'],
      [{ path_length: 0 }, 'path_length'],
      [{ path_length: 1.5 }, 'path_length'],
      [{ path_length: '2' }, 'path_length'],
      [{ lifetime: '4m' }, 'lifetime'],
      [{ key_type: 'rsa1024' }, 'key_type'],
      [{ common_name: '' }, 'common_name'],
      [{ common_name: 'x'.repeat(41) }, 'common_name'],
      [{ common_name: 'a\nb' }, 'common_name'],
      [{ name: 'a b' }, 'name'],
      [{ directory_url: 'https://ca.example/directory' }, ''],
    ];
    for (const [others, where] of cases) {
      const body = { type: 'local-ca', name: 'other', ...others };
      const { errors } = await expect<Problem>(400, 'POST', path, body);
      assert.equal(errors?.[0]?.path, where, JSON.stringify(others));
    }
    assert.match(
      (await expect<Problem>(400, 'POST', path, staging)).detail,
      /^An issuer named staging-ca already exists/,
    );
  });
});

suite('removing a private CA', () => {
  test('removes its root and CRLs, and is rejected while it is in use or if it is built in', async (t) => {
    const { create, expect, ask, server } = await prepared(t);
    await create(201, { name: 'web', domains: ['web.staging.example'] });
    const { detail } = await expect<Problem>(400, 'DELETE', `${path}/staging-ca`);
    assert.equal(detail, 'Certificates use the issuer staging-ca: web.');
    assert.match(
      (await expect<Problem>(400, 'DELETE', `${path}/local-ca`)).detail,
      /built-in private CA cannot be removed/,
    );
    await expect(200, 'PATCH', '/api/v1/certificates/web', { issuer: 'local-ca' });
    await expect(204, 'DELETE', `${path}/staging-ca`);
    assert.equal((await ask('GET', '/client/cas/staging-ca/ca.crt')).status, 404);
    assert.equal((await ask('GET', '/client/crls/3')).status, 404);
    assert.equal(eventsOf(server.dataDir, 'issuer.delete').length, 1);
    await expect(201, 'POST', path, staging);
  });
});
