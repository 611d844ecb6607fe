/** Certificates as administrators make, change, revoke and delete them over HTTP, and find them again among many. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { updateCertificate } from '../../../../src/db/tables/certificates/certificates.ts';
import { requireCertificate } from '../../../../src/domain/versions/certificate-lookup.ts';
import { administration, allPages } from '../../../harness/http/administration.ts';
import { eventsOf, importOne, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';
import { silentIssuer } from '../../../harness/issuance/renewal-fixtures.ts';

const list = '/api/v1/certificates';

type Change = { certificate: { name: string; status: string; domains: string[] }; renewal: number | null };
type Problem = { code: string; detail: string; errors?: { path: string }[] };

suite('creating a certificate', () => {
  test('is rejected with the paths of all invalid fields, and stores nothing', async (t) => {
    const { server, expect } = await administration(t);
    const problem = await expect<Problem>(400, 'POST', list, {
      name: '.x',
      domains: ['-'],
      key_type: 'dsa',
      lifetime: '1s',
      extra: 1,
    });
    const paths = problem.errors?.map(({ path }) => path);
    assert.deepEqual(paths, ['name', 'domains.0', 'key_type', 'lifetime', '']);
    const unknown = { name: 'a', domains: ['a.example.test'], issuer: 'nobody' };
    assert.match((await expect<Problem>(400, 'POST', list, unknown)).detail, /Unknown issuer "nobody"/);
    await expect(400, 'POST', list, {});
    assert.deepEqual(await expect(200, 'GET', list), []);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.create'), []);
  });

  test('issues it immediately from the private CA, and records the administrator', async (t) => {
    const { server, expect } = await administration(t);
    const body = { name: 'www', domains: ['www.example.test', '*.example.test'], lifetime: '30d' };
    const { certificate, renewal } = await expect<Change>(201, 'POST', list, body);
    assert.deepEqual([certificate.status, certificate.domains, renewal], ['valid', body.domains, null]);
    const events = eventsOf(server.dataDir, 'certificate.create');
    assert.deepEqual(
      events.map(({ actor, resource, ip }) => [actor, resource, ip]),
      [['admin:alice', 'certificate:www', '127.0.0.1']],
    );
    assert.equal((await expect<Problem>(409, 'POST', list, body)).code, 'certificate_exists');
    const { public_key_pin, ...settings } = await expect(200, 'GET', `${list}/www/settings`);
    assert.match(String(public_key_pin), /^sha256\/\/\S{44}$/);
    assert.deepEqual(settings, {
      name: 'www',
      domains: body.domains,
      key_type: 'ec256',
      issuer: 'local-ca',
      fallback_issuer: null,
      lifetime: '30d',
      profile: null,
      challenge: null,
      reuse_key: false,
      csr: null,
      usage: 'both',
      uris: [],
      emails: [],
      labels: [],
      subject: [],
      next_public_key_pin: null,
      auto_renew: true,
      disabled: false,
      failed_attempts: 0,
      retry_after: null,
      renewal_window: null,
      revoked_versions: [],
    });
  });

  test('rejects a wildcard that no DNS provider can validate, as does changing the domains', async (t) => {
    const { server, expect } = await administration(t);
    await silentIssuer(server.vault, 'acme');
    const body = { name: 'www', domains: ['*.example.test'], issuer: 'acme' };
    const { detail, errors } = await expect<Problem>(400, 'POST', list, body);
    assert.match(
      detail,
      /^No DNS provider has a zone for \*\.example\.test; add one.* --zone example\.test /,
    );
    assert.deepEqual(
      errors?.map(({ path }) => path),
      ['domains'],
    );
    assert.deepEqual(await expect(200, 'GET', list), []);
    await expect(201, 'POST', list, { ...body, domains: ['www.example.test'] });
    const { domains } = body;
    await expect(400, 'PATCH', `${list}/www`, { domains });
    await expect(200, 'PATCH', `${list}/www`, { domains, challenge: 'dns-01' });
  });

  test('queues a renewal if the issuer is an ACME CA', async (t) => {
    const { server, expect } = await administration(t);
    await silentIssuer(server.vault, 'acme');
    const body = { name: 'www', domains: ['www.example.test'], issuer: 'acme', profile: 'shortlived' };
    const { certificate, renewal } = await expect<Change>(201, 'POST', list, body);
    assert.equal(certificate.status, 'pending');
    const queued = await expect(200, 'GET', `/api/v1/renewals/${renewal}`);
    assert.equal(queued.requested_by, 'admin:alice');
    assert.equal(queued.issuer, 'acme');
  });
});

suite('a change of a certificate', () => {
  test('is rejected if empty or invalid, or for an unknown or imported certificate', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    await importOne(server.vault, 'bought', { chain: true });
    assert.match(
      (await expect<Problem>(400, 'PATCH', `${list}/www`, {})).detail,
      /at least one setting to change/,
    );
    await expect(400, 'PATCH', `${list}/www`, { challenge: 'dns-01' });
    await expect(400, 'PATCH', `${list}/www`, { name: 'other' });
    await expect(404, 'PATCH', `${list}/absent`, { auto_renew: false });
    assert.equal(
      (await expect<Problem>(409, 'PATCH', `${list}/bought`, { reuse_key: true })).code,
      'not_renewable',
    );
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.update'), []);
  });

  test('schedules one key rotation and shows the pin of the next key, until it is canceled', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    const pins = async () => {
      const { public_key_pin, next_public_key_pin } = await expect(200, 'GET', `${list}/www/settings`);
      return { current: public_key_pin, next: next_public_key_pin };
    };
    const before = await pins();
    const { renewal } = await expect<Change>(200, 'PATCH', `${list}/www`, { rotate_key: true });
    assert.equal(renewal, null);
    const scheduled = await pins();
    assert.equal(scheduled.current, before.current);
    assert.match(String(scheduled.next), /^sha256\/\/\S{44}$/);
    await expect(200, 'PATCH', `${list}/www`, { rotate_key: true });
    assert.deepEqual(await pins(), scheduled);
    await expect(200, 'PATCH', `${list}/www`, { rotate_key: false });
    assert.deepEqual(await pins(), before);
    const [event] = eventsOf(server.dataDir, 'certificate.update');
    assert.deepEqual(event?.detail, { rotate_key: true });
  });

  test('is shown in the response, and queues a renewal for new domains', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    const disabled = await expect<Change>(200, 'PATCH', `${list}/www`, { disabled: true, reuse_key: true });
    assert.deepEqual([disabled.certificate.status, disabled.renewal], ['disabled', null]);
    await expect(200, 'PATCH', `${list}/www`, { disabled: false });
    const renamed = await expect<Change>(200, 'PATCH', `${list}/www`, { domains: ['new.example.test'] });
    assert.deepEqual(renamed.certificate.domains, ['new.example.test']);
    assert(renamed.renewal !== null);
    const actors = eventsOf(server.dataDir, 'certificate.update').map(({ actor }) => actor);
    assert.deepEqual(actors, ['admin:alice', 'admin:alice', 'admin:alice']);
    const renewals = await expect<{ id: number }[]>(200, 'GET', `${list}/www/renewals`);
    assert.deepEqual(
      renewals.map(({ id }) => id),
      [renamed.renewal],
    );
  });
});

suite('the revocation of a version', () => {
  test('adds a certificate of the private CA to the CRL, and queues a renewal', async (t) => {
    const { server, expect } = await administration(t);
    const body = { name: 'www', domains: ['www.example.test'] };
    await expect(201, 'POST', list, body);
    const revoked = await expect<{ version: number; renewal: number }>(200, 'POST', `${list}/www/revoke`, {});
    assert.deepEqual([revoked.version, typeof revoked.renewal], [1, 'number']);
    const [event] = eventsOf(server.dataDir, 'certificate.revoke');
    assert.deepEqual([event?.actor, event?.detail], ['admin:alice', { version: 1, reason: 'unspecified' }]);
    const [version] = await expect<{ serial: string }[]>(200, 'GET', `${list}/www/versions`);
    const crl = Buffer.from(await (await server.get('/client/ca.crl')).arrayBuffer());
    assert(crl.includes(Buffer.from(version?.serial ?? '', 'hex')) && version !== undefined);
    const again = await expect<Problem>(400, 'POST', `${list}/www/revoke`, {});
    assert.match(again.detail, /was already revoked/);
  });

  test('is rejected for imported certificates, unknown versions and unknown reasons', async (t) => {
    const { server, expect } = await administration(t);
    await importOne(server.vault, 'www', { chain: false });
    const reason = 'superseded';
    const refused = await expect<Problem>(409, 'POST', `${list}/www/revoke`, { reason });
    assert.match(refused.detail, /revoke it at the CA that issued it/);
    await expect(404, 'POST', `${list}/www/revoke`, { reason, version: 9 });
    await expect(404, 'POST', `${list}/absent/revoke`, { reason });
    await expect(400, 'POST', `${list}/www/revoke`, { reason: 'because' });
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.revoke'), []);
  });
});

suite('the deletion of a certificate', () => {
  test('is rejected while an API key lists the certificate, unless forced', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    const { id } = await makeKey(server.vault, { certificates: ['www'] });
    assert.equal((await expect<Problem>(409, 'DELETE', `${list}/www`)).code, 'certificate_in_use');
    await expect(409, 'DELETE', `${list}/www?force=false`);
    for (const query of ['force=yes', 'force', 'forced=true'])
      await expect(400, 'DELETE', `${list}/www?${query}`);
    await expect(204, 'DELETE', `${list}/www?force=true`);
    await expect(404, 'DELETE', `${list}/www`);
    const [event] = eventsOf(server.dataDir, 'certificate.delete');
    assert.deepEqual([event?.actor, event?.detail.removed_from_api_keys], ['admin:alice', [id]]);
  });
});

suite('the keys that can read a certificate', () => {
  test('are those that list it and those for any certificate, also if revoked, page by page', async (t) => {
    const admin = await administration(t);
    const { vault } = admin.server;
    for (const name of ['www', 'other']) await makeCertificate(vault, name);
    await makeKey(vault, { name: 'elsewhere', certificates: ['other'] });
    for (let count = 0; count < 3; count += 1) {
      await makeKey(vault, { name: `named-${count}`, certificates: ['www', 'other'] });
      const { id } = await makeKey(vault, { name: `any-${count}` });
      if (count === 1) await admin.expect(200, 'POST', `/api/v1/api-keys/${id}/revoke`);
    }
    const { all, pages } = await allPages<{ name: string; state: string; certificates: string[] }>(
      admin,
      `${list}/www/api-keys?limit=2`,
    );
    assert.equal(pages, 3);
    assert.deepEqual(
      all.map(({ name }) => name),
      ['named-0', 'any-0', 'named-1', 'any-1', 'named-2', 'any-2'],
    );
    assert.deepEqual(
      all.map(({ state }) => state),
      ['active', 'active', 'active', 'revoked', 'active', 'active'],
    );
    assert.deepEqual(all[0]?.certificates, ['other', 'www']);
    await admin.expect(404, 'GET', `${list}/absent/api-keys`);
  });
});

suite('the list of certificates', () => {
  /** Twelve of different health, and what each is. */
  async function zoo(t: Parameters<typeof administration>[0]) {
    const admin = await administration(t);
    const { vault, world } = admin.server;
    await silentIssuer(vault, 'acme');
    const make = (name: string, others: object = {}) =>
      admin.expect(201, 'POST', list, { name, domains: [`${name}.example.test`], ...others });
    await make('long', { lifetime: '1000d' });
    for (const name of ['short-b', 'short-a']) await make(name, { lifetime: '24h' });
    await make('off');
    await make('waiting', { issuer: 'acme' });
    await importOne(vault, 'bought', { chain: true });
    await make('gone', { lifetime: '2h' });
    await admin.expect(200, 'PATCH', `${list}/off`, { disabled: true });
    world.advance(20 * 3_600_000);
    const names = async (query: string) =>
      (await admin.expect<{ name: string }[]>(200, 'GET', `${list}?${query}`)).map(({ name }) => name);
    return { admin, names, vault };
  }

  test('is filtered by a part of a name or domain, by status and by issuer, alone and combined', async (t) => {
    const { names } = await zoo(t);
    assert.deepEqual(await names('search=SHORT'), ['short-a', 'short-b']);
    assert.deepEqual(await names('search=waiting.example'), ['waiting']);
    assert.deepEqual(await names('search=%25'), []);
    assert.deepEqual(await names('status=expired'), ['gone']);
    assert.deepEqual(await names('status=expiring'), ['short-a', 'short-b']);
    assert.deepEqual(await names('status=pending'), ['waiting']);
    assert.deepEqual(await names('status=disabled'), ['off']);
    assert.deepEqual(await names('status=valid'), ['bought', 'long']);
    assert.deepEqual(await names('issuer=acme'), ['waiting']);
    assert.deepEqual(await names('issuer='), ['bought']);
    assert.deepEqual(await names('issuer=nobody'), []);
    assert.deepEqual(await names('issuer=local-ca&status=valid&search=o'), ['long']);
  });

  test('is sorted by name, expiry or status, and its pages have each one once', async (t) => {
    const { admin, names } = await zoo(t);
    const sorted = {
      name: ['bought', 'gone', 'long', 'off', 'short-a', 'short-b', 'waiting'],
      expiry: ['gone', 'short-a', 'short-b', 'bought', 'off', 'long', 'waiting'],
      status: ['gone', 'short-a', 'short-b', 'waiting', 'bought', 'long', 'off'],
    };
    for (const [sort, expected] of Object.entries(sorted)) {
      assert.deepEqual(await names(`sort=${sort}`), expected, sort);
      const { all, pages } = await allPages<{ name: string }>(
        admin,
        `${list}?sort=${sort}&limit=2&search=example`,
      );
      assert.equal(pages, 4);
      assert.deepEqual(
        all.map(({ name }) => name),
        expected,
        `${sort}, page by page`,
      );
    }
  });

  test('rejects invalid filters, orders and cursors', async (t) => {
    const { admin } = await zoo(t);
    const wrong = ['status=fine', 'sort=age', 'sort=expiry&after=www', 'after=1:www:x', 'search=a&search=b'];
    for (const query of wrong) await admin.expect(400, 'GET', `${list}?${query}`);
  });

  test('has nothing after a cursor of another sort order or with the highest number', async (t) => {
    const { admin } = await zoo(t);
    const last = String(Number.MAX_SAFE_INTEGER);
    for (const query of ['sort=status&after=1700000000000:www', `sort=expiry&after=${last}:zzz`]) {
      assert.deepEqual(await admin.expect(200, 'GET', `${list}?${query}`), [], query);
    }
  });

  test('shows a key nothing outside its allowlist, with any filter', async (t) => {
    const { admin, vault } = await zoo(t);
    const key = await makeKey(vault, { certificates: ['long'] });
    for (const query of ['search=short', 'status=expired', 'issuer=acme', 'sort=expiry', 'sort=status', '']) {
      const response = await admin.server.get(`${list}?${query}`, key.raw);
      const found = ((await response.json()) as { name: string }[]).map(({ name }) => name);
      assert(['long', ''].includes(found.join()), query);
    }
  });

  test('filters by the same status that each certificate reports', async (t) => {
    const { admin, vault } = await zoo(t);
    const row = await requireCertificate(vault.db.reader, 'long');
    await vault.db.write((writer) => updateCertificate(writer, row.id, { disabled_at: null }));
    const assertSame = async () => {
      const all = await admin.expect<{ name: string; status: string }[]>(200, 'GET', list);
      for (const status of ['pending', 'valid', 'expiring', 'expired', 'not_yet_valid', 'disabled']) {
        const found = await admin.expect<{ name: string }[]>(200, 'GET', `${list}?status=${status}`);
        assert.deepEqual(
          found.map(({ name }) => name),
          all.filter((one) => one.status === status).map(({ name }) => name),
        );
      }
      return all.find(({ name }) => name === 'long')?.status;
    };
    for (const [ahead, status] of [
      [5 * 60_000, 'valid'],
      [5 * 60_000 + 1, 'not_yet_valid'],
    ] as const) {
      const not_before = admin.server.world.now() + ahead;
      await vault.db.write((writer) =>
        writer
          .updateTable('certificate_versions')
          .set({ not_before })
          .where('certificate_id', '=', row.id)
          .execute(),
      );
      assert.equal(await assertSame(), status);
    }
    for (let days = 0; days < 1100; days += 90) {
      admin.server.world.advance(90 * 86_400_000);
      await assertSame();
    }
  });
});
