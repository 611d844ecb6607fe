/** PUT of a certificate: one call that creates it, changes it or finds it so, as Ansible and Terraform make it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, importOne, makeKey } from '../../../harness/http/fixtures.ts';
import { silentIssuer } from '../../../harness/issuance/renewal-fixtures.ts';

const list = '/api/v1/certificates';
const www = `${list}/www`;

type Ensured = {
  certificate: {
    name: string;
    domains: string[];
    issuer: string;
    current_version: { version: number } | null;
  };
  renewal: number | null;
  changed: boolean;
};
type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type Settings = Record<string, unknown>;

const audited = (dataDir: string) =>
  ['certificate.create', 'certificate.issue', 'certificate.update'].flatMap((action) =>
    eventsOf(dataDir, action)
      .filter(({ resource }) => resource === 'certificate:www')
      .map(({ actor, detail }) => [action, actor, detail]),
  );

test('PUT creates the certificate, and repeating it changes and records nothing', async (t) => {
  const { server, expect } = await administration(t);
  const body = { domains: ['www.example.test', 'a.example.test'], lifetime: '30d' };
  const created = await expect<Ensured>(201, 'PUT', www, body);
  assert.deepEqual(
    [
      created.changed,
      created.renewal,
      created.certificate.name,
      created.certificate.current_version?.version,
    ],
    [true, null, 'www', 1],
  );
  const events = audited(server.dataDir);
  assert.deepEqual(
    events.map(([action, actor]) => [action, actor]),
    [
      ['certificate.create', 'admin:alice'],
      ['certificate.issue', 'admin:alice'],
    ],
  );
  const defaults = { issuer: 'local-ca', key_type: 'ec256', auto_renew: true, disabled: false };
  for (const same of [
    body,
    { ...body, ...defaults, name: 'www', reuse_key: false },
    { ...body, domains: [...body.domains].reverse(), lifetime: '720h' },
  ]) {
    const again = await expect<Ensured>(200, 'PUT', www, same);
    assert.deepEqual([again.changed, again.renewal, again.certificate], [false, null, created.certificate]);
  }
  assert.deepEqual(audited(server.dataDir), events);
});

test('PUT changes what differs, resets omitted settings to defaults, and renews for new domains', async (t) => {
  const { server, expect } = await administration(t);
  await silentIssuer(server.vault, 'acme');
  await expect(201, 'PUT', www, {
    ...{ domains: ['www.example.test'], issuer: 'acme', fallback_issuer: 'local-ca', reuse_key: true },
    ...{ profile: 'shortlived', challenge: 'http-01', auto_renew: false, disabled: true },
  });
  const renewals = () => expect<unknown[]>(200, 'GET', '/api/v1/renewals');
  assert.deepEqual(await renewals(), []);
  const settings = await expect<Settings>(200, 'GET', `${www}/settings`);
  assert.deepEqual([settings.auto_renew, settings.disabled, settings.profile], [false, true, 'shortlived']);

  const changed = await expect<Ensured>(200, 'PUT', www, { domains: ['www.example.test'], issuer: 'acme' });
  assert.equal(changed.changed, true);
  const now = await expect<Settings>(200, 'GET', `${www}/settings`);
  const { auto_renew, disabled, profile, challenge, fallback_issuer, reuse_key } = now;
  assert.deepEqual(
    [auto_renew, disabled, profile, challenge, fallback_issuer, reuse_key],
    [...[true, false, null, null, null], false],
  );
  assert.equal(eventsOf(server.dataDir, 'certificate.update').length, 1);

  const more = { domains: ['www.example.test', 'b.example.test'], issuer: 'acme' };
  const renewed = await expect<Ensured>(200, 'PUT', www, more);
  assert.deepEqual([renewed.changed, typeof renewed.renewal], [true, 'number']);
  assert.equal((await expect<Ensured>(200, 'PUT', www, more)).changed, false);
});

test('PUT queues a renewal for another key type, but not for settings of later renewals', async (t) => {
  const { expect } = await administration(t);
  const body = { domains: ['www.example.test'] };
  await expect(201, 'PUT', www, body);
  const later = await expect<Ensured>(200, 'PUT', www, { ...body, lifetime: '30d', reuse_key: true });
  assert.deepEqual([later.changed, later.renewal], [true, null]);
  const renewed = await expect<Ensured>(200, 'PUT', www, { ...body, key_type: 'ec384' });
  assert.deepEqual([renewed.changed, typeof renewed.renewal], [true, 'number']);
});

test('PUT sets the issuer of an imported certificate and queues a renewal', async (t) => {
  const { server, expect } = await administration(t);
  await importOne(server.vault, 'www', { chain: true });
  const { changed, renewal, certificate } = await expect<Ensured>(200, 'PUT', www, {
    domains: ['www.example.test'],
  });
  assert.deepEqual([changed, typeof renewal, certificate.issuer], [true, 'number', 'local-ca']);
});

test('concurrent PUT requests create the certificate once', async (t) => {
  const { server, ask } = await administration(t);
  const body = { domains: ['www.example.test'] };
  const answers = await Promise.all([1, 2, 3].map(() => ask('PUT', www, body)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 201]);
  assert.equal(eventsOf(server.dataDir, 'certificate.create').length, 1);
  assert.equal(eventsOf(server.dataDir, 'certificate.update').length, 0);
});

test('PUT rejects invalid settings and unauthorized clients, and changes nothing', async (t) => {
  const { server, expect } = await administration(t);
  const domains = ['www.example.test'];
  const refused = async (path: string, body: object) => {
    const { errors = [], detail } = await expect<Problem>(400, 'PUT', path, body);
    return errors[0]?.path ?? detail;
  };
  assert.equal(await refused(www, {}), 'domains');
  assert.equal(await refused(www, { domains, name: 'other' }), 'name');
  assert.equal(await refused(www, { domains, issuer: 'nobody' }), 'issuer');
  assert.equal(await refused(www, { domains, profile: 'fast' }), 'profile');
  assert.equal(await refused(www, { domains, rotate_key: true }), '');
  await expect(400, 'PUT', `${list}/.hidden`, { domains });
  assert.deepEqual(await expect(200, 'GET', list), []);

  await expect(201, 'PUT', www, { domains });
  const before = await expect(200, 'GET', `${www}/settings`);
  assert.equal(await refused(www, { domains: ['b.example.test'], challenge: 'http-01' }), 'challenge');
  assert.deepEqual(await expect(200, 'GET', `${www}/settings`), before);

  const { raw } = await makeKey(server.vault);
  const init = {
    method: 'PUT',
    body: JSON.stringify({ domains }),
    headers: { 'Content-Type': 'application/json' },
  };
  assert.equal((await server.get(www, raw, init)).status, 403);
  assert.equal((await server.get(www, undefined, init)).status, 403);
});
