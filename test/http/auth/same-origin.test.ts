/** Where a request comes from, by what browsers say: the vault's own pages, elsewhere, or nothing at all. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { viewAdministrators } from '../../../src/domain/access/administrators.ts';
import { offerSetup } from '../../../src/domain/access/setup.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { type Provenance, provenanceOf } from '../../../src/http/auth/same-origin.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import {
  cookieOf,
  fromPage,
  goodPassword,
  makeAdministrator,
  signIn,
} from '../../harness/http/sign-in-fixtures.ts';

const site = 'https://vault.example.test';

type Case = readonly [
  headers: Readonly<Record<string, string>>,
  publicUrl: string | undefined,
  provenance: Provenance,
];

const cases: readonly Case[] = [
  [{}, undefined, 'unsaid'],
  [{ host: 'vault.example.test' }, site, 'unsaid'],
  [{ 'sec-fetch-site': 'same-origin' }, site, 'same-origin'],
  [{ 'sec-fetch-site': 'same-origin' }, undefined, 'same-origin'],
  [{ 'sec-fetch-site': 'same-site', origin: site }, site, 'elsewhere'],
  [{ 'sec-fetch-site': 'cross-site', origin: site }, site, 'elsewhere'],
  [{ 'sec-fetch-site': 'none' }, site, 'elsewhere'],
  [{ 'sec-fetch-site': '' }, site, 'elsewhere'],
  [{ 'sec-fetch-site': 'same-origin, cross-site' }, site, 'elsewhere'],
  [{ origin: site }, site, 'same-origin'],
  [{ origin: 'http://vault.example.test' }, site, 'elsewhere'],
  [{ origin: `${site}:8443` }, site, 'elsewhere'],
  [{ origin: `${site}.evil.test` }, site, 'elsewhere'],
  [{ origin: 'https://other.example.test' }, site, 'elsewhere'],
  [{ origin: 'https://example.test' }, site, 'elsewhere'],
  [{ origin: 'https://other.example.test', host: 'other.example.test' }, site, 'elsewhere'],
  [{ origin: 'null' }, site, 'elsewhere'],
  [{ origin: '' }, site, 'elsewhere'],
  [{ origin: `${site}/` }, site, 'elsewhere'],
  [{ origin: 'https://user@vault.example.test' }, site, 'elsewhere'],
  [{ origin: 'http://127.0.0.1:8080', host: '127.0.0.1:8080' }, undefined, 'same-origin'],
  [{ origin: 'http://[::1]:8080', host: '[::1]:8080' }, undefined, 'same-origin'],
  [{ origin: site, host: 'vault.example.test' }, undefined, 'same-origin'],
  [{ origin: site, host: 'VAULT.example.test:443' }, undefined, 'same-origin'],
  [{ origin: 'http://127.0.0.1:8081', host: '127.0.0.1:8080' }, undefined, 'elsewhere'],
  [{ origin: 'http://localhost:8080', host: '127.0.0.1:8080' }, undefined, 'elsewhere'],
  [{ origin: 'https://evil.test', host: 'vault.example.test' }, undefined, 'elsewhere'],
  [{ origin: `${site}/page`, host: 'vault.example.test' }, undefined, 'elsewhere'],
  [{ origin: 'null', host: 'null' }, undefined, 'elsewhere'],
  [{ origin: site }, undefined, 'elsewhere'],
];

for (const [headers, publicUrl, provenance] of cases) {
  test(`${JSON.stringify(headers)} to ${publicUrl ?? 'any host'} is ${provenance}`, () =>
    assert.equal(provenanceOf(headers, publicUrl), provenance));
}

/** What browsers send with a request that a page elsewhere makes, with the cookie that SameSite let through. */
const attacks: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'a form of another site': {
    'Content-Type': 'application/x-www-form-urlencoded',
    Origin: 'https://evil.test',
    'Sec-Fetch-Site': 'cross-site',
    'Sec-Fetch-Mode': 'navigate',
  },
  'a form of a sibling subdomain that looks like JSON': {
    'Content-Type': 'text/plain',
    Origin: 'https://other.example.test',
    'Sec-Fetch-Site': 'same-site',
    'Sec-Fetch-Mode': 'navigate',
  },
  'fetch from another origin': {
    'Content-Type': 'application/json',
    Origin: 'https://evil.test',
    'Sec-Fetch-Site': 'cross-site',
  },
  'fetch from a sibling subdomain': {
    'Content-Type': 'application/json',
    Origin: 'https://other.example.test',
    'Sec-Fetch-Site': 'same-site',
  },
  'fetch from a sibling subdomain in an old browser': {
    'Content-Type': 'application/json',
    Origin: 'https://other.example.test',
  },
  'a sandboxed frame': { 'Content-Type': 'application/json', Origin: 'null' },
  'a client without Origin and Sec-Fetch-Site': { 'Content-Type': 'application/json' },
};

suite('a change in a session', () => {
  for (const [attack, headers] of Object.entries(attacks)) {
    test(`by ${attack} is rejected, recorded, and changes nothing`, async (t) => {
      const server = await checkedServer(t, { publicUrl: site });
      await makeAdministrator(server.vault, 'alice');
      await makeCertificate(server.vault, 'www');
      const { cookie, send } = await signIn(server, 'alice');
      const body = JSON.stringify({ name: 'mallory', password: goodPassword });
      const targets = [
        ['POST', '/api/v1/administrators', body],
        ['DELETE', '/api/v1/administrators/alice', undefined],
        ['POST', '/api/v1/certificates/www/renew', undefined],
        ['DELETE', '/api/v1/session', undefined],
      ] as const;
      for (const [method, path, text] of targets) {
        const response = await server.get(path, undefined, {
          method,
          headers: { ...headers, Cookie: cookie },
          ...(text !== undefined && { body: text }),
        });
        assert.equal(response.status, 403, `${method} ${path}`);
        assert.match(await response.text(), /only from the console of this vault/);
      }
      assert.deepEqual(
        (await viewAdministrators(server.vault)).map(({ name }) => name),
        ['alice'],
      );
      assert.equal((await send('GET', '/api/v1/session')).status, 200, 'and the session goes on');
      assert.deepEqual(eventsOf(server.dataDir, 'renewal.request'), []);
      const refusals = eventsOf(server.dataDir, 'access.refuse');
      assert.deepEqual(
        refusals.map(({ actor, resource, detail }) => [actor, resource, detail.reason]),
        targets.map(([method, path]) => ['admin:alice', `${method} ${path}`, 'from another site']),
      );
    });
  }

  test('is rejected if its body is not JSON, even from the same origin', async (t) => {
    const server = await checkedServer(t, { publicUrl: site });
    await makeAdministrator(server.vault, 'alice');
    const { send } = await signIn(server, 'alice');
    const body = { name: 'bob', password: goodPassword };
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const init = { headers: { 'Content-Type': type } };
      const response = await send('POST', '/api/v1/administrators', body, init);
      assert.equal(response.status, 400, type);
      assert.match(await response.text(), /must be JSON/);
    }
    assert.equal((await viewAdministrators(server.vault)).length, 1);
  });

  test('is accepted if only Origin shows that it comes from the vault', async (t) => {
    const server = await checkedServer(t, { publicUrl: site });
    await makeAdministrator(server.vault, 'alice');
    const { cookie } = await signIn(server, 'alice');
    const reply = await server.raw('DELETE', '/api/v1/session', [`Cookie: ${cookie}`, `Origin: ${site}`]);
    assert.equal(reply.status, 204);
  });

  test('a GET request in a session is accepted from another site', async (t) => {
    const server = await checkedServer(t);
    await makeAdministrator(server.vault, 'alice');
    const { cookie } = await signIn(server, 'alice');
    const lines = [`Cookie: ${cookie}`, 'Sec-Fetch-Site: cross-site'];
    assert.equal((await server.raw('GET', '/api/v1/session', lines)).status, 200);
  });

  test('a change with an API key is accepted from another site', async (t) => {
    const server = await checkedServer(t);
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    const headers = { 'Sec-Fetch-Site': 'cross-site' };
    const init = { method: 'POST', headers };
    assert.equal((await server.get('/api/v1/certificates/www/renew', raw, init)).status, 202);
  });
});

suite('signing in and setting up', () => {
  test('from another site is rejected, and creates no administrator or session', async (t) => {
    const server = await checkedServer(t, { publicUrl: site });
    const token = (await offerSetup(server.vault, localCli))?.expose();
    const setup = { token, name: 'mallory', password: goodPassword };
    const elsewhere = { headers: { Origin: 'https://evil.test', 'Sec-Fetch-Site': 'cross-site' } };
    const refused = await server.get(
      '/api/v1/setup',
      undefined,
      fromPage('POST', setup, undefined, elsewhere),
    );
    assert.deepEqual([refused.status, await codeOf(refused)], [403, 'forbidden']);
    assert.deepEqual(await viewAdministrators(server.vault), []);
    await makeAdministrator(server.vault, 'alice');
    const credentials = { name: 'alice', password: goodPassword };
    const init = fromPage('POST', credentials, undefined, elsewhere);
    const response = await server.get('/api/v1/session', undefined, init);
    assert.deepEqual([response.status, cookieOf(response)], [403, '']);
    assert.deepEqual(eventsOf(server.dataDir, 'session.create'), []);
  });

  test('signing in works without Origin and Sec-Fetch-Site', async (t) => {
    const server = await checkedServer(t);
    await makeAdministrator(server.vault, 'alice');
    const response = await server.get('/api/v1/session', undefined, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: 'alice', password: goodPassword }),
    });
    assert.equal(response.status, 201);
  });
});
