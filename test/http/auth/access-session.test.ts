/** What an administrator's session opens: everything, in the name of the person, and never by way of a key. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { alice, makeAccount } from '../../harness/http/acme-fixtures.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import {
  administratorEndpoints,
  type GuardedEndpoint,
  guardedEndpoints,
  openRenewal,
} from '../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

const asked = 'www';
const hidden = 'hidden-from-most';

async function prepared(
  t: Parameters<typeof checkedServer>[0],
  options: { readonly administrators?: Readonly<Record<string, string>> },
) {
  const server = await checkedServer(t, options);
  for (const name of [asked, hidden]) await makeCertificate(server.vault, name);
  const endpoints = guardedEndpoints(await openRenewal(server, asked));
  const ask = ({ method, path, lines: own }: GuardedEndpoint, lines: readonly string[]) =>
    server.raw(method, path(asked), [...own, ...lines]);
  return { server, endpoints, ask };
}

const label = ({ method, path }: GuardedEndpoint) => `${method} ${path(asked)}`;

suite('the session of an administrator', () => {
  test('has access to every endpoint and certificate, and downloads are recorded for the administrator', async (t) => {
    const { server, endpoints, ask } = await prepared(t, alice);
    for (const endpoint of endpoints) {
      assert.equal((await ask(endpoint, [alice.line])).status, endpoint.success, label(endpoint));
    }
    const accounts = administratorEndpoints(await makeAccount(server.vault)).filter(({ path }) =>
      /\/acme-accounts(\/\d+)?$/.test(path),
    );
    for (const { method, path } of accounts) {
      const { status } = await server.raw(method, path, [alice.line]);
      assert.equal(status, method === 'DELETE' ? 204 : 200, `${method} ${path}`);
    }
    const downloads = eventsOf(server.dataDir, 'certificate.download');
    assert(downloads.length > 0 && downloads.every(({ actor }) => actor === 'admin:alice'));
    const list = await server.get('/api/v1/certificates', undefined, alice.init);
    assert.deepEqual(
      ((await list.json()) as { name: string }[]).map(({ name }) => name),
      [hidden, asked],
    );
    const absent = await server.get('/api/v1/certificates/absent', undefined, alice.init);
    assert.equal(absent.status, 404, 'nothing is hidden from administrators');
    assert.deepEqual(eventsOf(server.dataDir, 'access.refuse'), []);
    assert.doesNotMatch(server.log.lines.join('\n'), /token-of/);
  });

  test('does not extend the rights of an API key in the same request', async (t) => {
    const { server, endpoints, ask } = await prepared(t, alice);
    const limited = await makeKey(server.vault, { certificates: [hidden] });
    for (const endpoint of endpoints.filter(({ namesCertificate }) => namesCertificate)) {
      assert.equal(
        (await ask(endpoint, [`Authorization: Bearer ${limited.raw}`, alice.line])).status,
        403,
        label(endpoint),
      );
    }
  });

  test('is rejected beside malformed credentials or another authorization scheme', async (t) => {
    const { server, endpoints, ask } = await prepared(t, alice);
    for (const credentials of ['', ' ', 'Bearer', 'Bearer a b', 'Bearer "a"', 'Basic YTpi', 'nonsense']) {
      for (const endpoint of endpoints) {
        const { status } = await ask(endpoint, [alice.line, `Authorization: ${credentials}`]);
        assert.equal(status, 401, `${label(endpoint)} with "${credentials}"`);
      }
      const { status } = await server.raw('GET', '/api/v1/session', [
        alice.line,
        `Authorization: ${credentials}`,
      ]);
      assert.equal(status, 401);
    }
    assert.equal((await server.raw('GET', '/api/v1/session', [alice.line])).status, 200);
  });

  test('is rejected if there are no administrators', async (t) => {
    const { endpoints, ask } = await prepared(t, {});
    for (const endpoint of endpoints) {
      assert.equal((await ask(endpoint, [alice.line])).status, 401, label(endpoint));
    }
  });
});
