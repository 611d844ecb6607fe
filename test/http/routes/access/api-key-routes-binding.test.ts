/** The client certificate of an API key over HTTP: which one a key can have, and where it shows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../../src/domain/certificates/certificates.ts';
import { administration } from '../../../harness/http/administration.ts';
import { boundServer } from '../../../harness/http/client-certificates.ts';
import { eventsOf, importOne, makeCertificate } from '../../../harness/http/fixtures.ts';
import { visit } from '../../../harness/http/https-client.ts';

const path = '/api/v1/api-keys';
const rights = { scopes: ['certificates:read'], certificates: ['*'] };
type View = { readonly id: number; readonly client_certificate: string | null };
type Refusal = { readonly detail: string; readonly errors: readonly { readonly path: string }[] };

test('a key is created, listed, changed and recorded with its client certificate', async (t) => {
  const { server, expect } = await administration(t);
  for (const name of ['web-1', 'web-2']) await makeCertificate(server.vault, name);
  const plain = await expect<View>(201, 'POST', path, { ...rights, name: 'plain' });
  assert.equal(plain.client_certificate, null);
  const made = await expect<View>(201, 'POST', path, {
    ...rights,
    name: 'bound',
    client_certificate: 'web-1',
  });
  assert.equal(made.client_certificate, 'web-1');
  const listed = await expect<View[]>(200, 'GET', path);
  assert.deepEqual(
    listed.map((key) => key.client_certificate),
    [null, 'web-1'],
  );
  const change = (id: number, body: unknown) => expect<View>(200, 'PATCH', `${path}/${id}`, body);
  assert.equal((await change(made.id, { name: 'other' })).client_certificate, 'web-1');
  assert.equal((await change(made.id, { client_certificate: 'web-2' })).client_certificate, 'web-2');
  assert.equal((await change(made.id, { client_certificate: null })).client_certificate, null);
  const details = ['api_key.create', 'api_key.update'].map((action) =>
    eventsOf(server.dataDir, action).map(({ detail }) => [
      detail.client_certificate,
      (detail.before as { client_certificate?: unknown } | undefined)?.client_certificate,
    ]),
  );
  assert.deepEqual(details, [
    [
      [undefined, undefined],
      ['web-1', undefined],
    ],
    [
      ['web-1', undefined],
      ['web-2', 'web-1'],
      [null, 'web-2'],
    ],
  ]);
});

test('a certificate that no private CA issues, or that is for servers only, is rejected by name', async (t) => {
  const { server, expect } = await administration(t);
  await makeCertificate(server.vault, 'web-1', undefined, { usage: 'server' });
  await importOne(server.vault, 'imported', { chain: true });
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      'web-1',
      /"web-1" is issued for servers only\..*Fix: vault certificate update --name web-1 --usage both/s,
    ],
    ['imported', /"imported" is not issued by a private CA of the vault/],
    ['web-2', /unknown certificate "web-2".*web-1/s],
    ['../web', /"\.\.\/web" is not a name/],
  ];
  for (const [name, reason] of cases) {
    const body = { ...rights, name: 'bound', client_certificate: name };
    const { detail, errors } = await expect<Refusal>(400, 'POST', path, body);
    assert.match(detail, reason);
    assert.deepEqual(
      errors.map((error) => error.path),
      ['client_certificate'],
    );
  }
  assert.deepEqual(await expect(200, 'GET', path), []);
});

test('a certificate that a key is bound to is deleted only by force, and other settings can be changed then', async (t) => {
  const { server, expect } = await administration(t);
  await makeCertificate(server.vault, 'web-1');
  const { id } = await expect<View>(201, 'POST', path, {
    ...rights,
    name: 'bound',
    client_certificate: 'web-1',
  });
  const { detail } = await expect<Refusal>(409, 'DELETE', '/api/v1/certificates/web-1');
  assert.match(detail, /API keys work only with "web-1" as client certificate: 1 \(bound\)\./);
  await deleteCertificate(server.vault, localCli, 'web-1', { force: true });
  const changed = await expect<View>(200, 'PATCH', `${path}/${id}`, { name: 'other' });
  assert.equal(changed.client_certificate, 'web-1');
});

test('whoami names the client certificate of the key', async (t) => {
  const { server, bound, pairOf } = await boundServer(t);
  const headers = { Authorization: `Bearer ${bound.raw}` };
  const { body } = await visit(`${server.url}/api/v1/whoami`, { headers, ...(await pairOf('web-1')) });
  assert.equal((JSON.parse(body) as View).client_certificate, 'web-1');
});
