/** The table of authorisation: every endpoint with every kind of credentials, and what no refusal may show. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { alice, makeAccount } from '../../harness/http/acme-fixtures.ts';
import type { CheckedServer } from '../../harness/http/checked.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import {
  administratorEndpoints,
  allBut,
  expiredKey,
  type GuardedEndpoint,
  guardedEndpoints,
  openRenewal,
  revokedKey,
  strangers,
} from '../../harness/http/credentials.ts';
import { eventsOf, makeCertificate, makeKey, type TestKey } from '../../harness/http/fixtures.ts';
import type { RawReply } from '../../harness/http/raw.ts';

type Prepared = {
  readonly server: CheckedServer;
  readonly endpoints: readonly GuardedEndpoint[];
  readonly ask: (endpoint: GuardedEndpoint, lines: readonly string[]) => Promise<RawReply>;
};

const asked = 'www';
const hidden = 'hidden-from-most';

async function prepared(t: Parameters<typeof checkedServer>[0]): Promise<Prepared> {
  const server = await checkedServer(t);
  for (const name of [asked, hidden]) await makeCertificate(server.vault, name);
  const endpoints = guardedEndpoints(await openRenewal(server, asked));
  assert.equal(endpoints.length, 17);
  const ask: Prepared['ask'] = ({ method, path, lines: own }, lines) =>
    server.raw(method, path(asked), [...own, ...lines]);
  return { server, endpoints, ask };
}

const bearer = ({ raw }: TestKey) => [`Authorization: Bearer ${raw}`];
const label = ({ method, path }: GuardedEndpoint) => `${method} ${path(asked)}`;

/** Everything of an answer that two callers could compare. */
function comparable({ status, headers, body }: RawReply) {
  const own = ['date', 'x-request-id'];
  return { status, headers: [...headers].filter(([name]) => !own.includes(name)), body };
}

function assertSilent({ body }: RawReply, keys: readonly TestKey[], place: string): void {
  assert.doesNotMatch(body, /-----BEGIN|vk_/, place);
  assert(!body.includes(hidden), place);
  for (const { raw } of keys) assert(!body.includes(raw.slice(-10)), place);
}

suite('every endpoint behind a scope', () => {
  test('gives one and the same 401 to all unknown, revoked and expired keys', async (t) => {
    const { server, endpoints, ask } = await prepared(t);
    const good = await makeKey(server.vault);
    const ended = { revoked: await revokedKey(server), expired: await expiredKey(server) };
    const callers = {
      ...strangers(good),
      'a revoked key': bearer(ended.revoked),
      'an expired key': bearer(ended.expired),
    };
    const [first] = endpoints;
    assert(first);
    const expected = comparable(await ask(first, []));
    assert.equal(expected.status, 401);
    assert.equal(JSON.parse(expected.body).code, 'unauthenticated');
    assert.equal(new Headers(expected.headers).get('WWW-Authenticate'), 'Bearer');
    for (const endpoint of endpoints) {
      // So many failures at once would be too many.
      server.world.advance(minute);
      for (const [caller, lines] of Object.entries(callers)) {
        const place = `${label(endpoint)} with ${caller}`;
        const reply = await ask(endpoint, lines);
        assert.deepEqual(comparable(reply), expected, place);
        assertSilent(reply, [good, ended.revoked, ended.expired], place);
      }
    }
    assert.doesNotMatch(server.log.lines.join('\n'), /vk_|BEGIN|hidden-from-most|"level":"(warn|error)"/);
  });

  test('gives 403 to a key that has all scopes but the one it needs', async (t) => {
    const { server, endpoints, ask } = await prepared(t);
    for (const endpoint of endpoints) {
      const key = await makeKey(server.vault, { scopes: allBut(...endpoint.suffices) });
      const reply = await ask(endpoint, bearer(key));
      assert.equal(reply.status, 403, label(endpoint));
      assert.equal(JSON.parse(reply.body).code, 'forbidden');
      assert.match(reply.body, new RegExp(endpoint.scope), 'the answer names the scope that is missing');
      assertSilent(reply, [key], label(endpoint));
    }
  });

  test('gives 403 to a key whose allowlist lacks the certificate, and lists nothing of it', async (t) => {
    const { server, endpoints, ask } = await prepared(t);
    await makeCertificate(server.vault, 'other');
    const key = await makeKey(server.vault, { certificates: ['other'] });
    for (const endpoint of endpoints) {
      const reply = await ask(endpoint, bearer(key));
      assertSilent(reply, [key], label(endpoint));
      if (endpoint.namesCertificate) {
        assert.equal(reply.status, 403, label(endpoint));
        assert.equal(JSON.parse(reply.body).code, 'forbidden');
      } else {
        assert.equal(reply.status, 200);
        assert.deepEqual(
          JSON.parse(reply.body).map(({ name }: { name: string }) => name),
          ['other'],
        );
      }
    }
  });

  test('accepts a key with only its scope, for only this certificate or for any', async (t) => {
    const { server, endpoints, ask } = await prepared(t);
    for (const endpoint of endpoints) {
      const keys = {
        exact: await makeKey(server.vault, { scopes: [endpoint.scope], certificates: [asked] }),
        any: await makeKey(server.vault, { scopes: [endpoint.scope], certificates: ['*'] }),
      };
      for (const [kind, key] of Object.entries(keys)) {
        const reply = await ask(endpoint, bearer(key));
        assert.equal(reply.status, endpoint.success, `${label(endpoint)} with ${kind}`);
        assert(!reply.body.includes('vk_'));
        if (kind === 'exact') assert(!reply.body.includes(hidden), label(endpoint));
        const isKeystore = reply.headers.get('Content-Type') === 'application/pkcs12';
        const isKey = isKeystore || reply.body.includes('PRIVATE KEY');
        assert.equal(isKey, endpoint.scope === 'private_keys:read', label(endpoint));
      }
    }
    assert.doesNotMatch(server.log.lines.join('\n'), /vk_|BEGIN|hidden-from-most|"level":"(warn|error)"/);
  });

  test('rejects a request before it checks the query or the version', async (t) => {
    const { server } = await prepared(t);
    const limited = await makeKey(server.vault, { certificates: [asked] });
    for (const query of ['version=abc', 'version=999', 'nonsense=1']) {
      const target = `/api/v1/certificates/${hidden}/private.key?${query}`;
      assert.equal((await server.raw('GET', target, [])).status, 401);
      assert.equal((await server.raw('GET', target, bearer(limited))).status, 403);
    }
  });

  test('lets a key for any certificate read one that was added later', async (t) => {
    const { server } = await prepared(t);
    const key = await makeKey(server.vault);
    assert.equal((await server.get('/api/v1/certificates/later', key.raw)).status, 404);
    await makeCertificate(server.vault, 'later');
    assert.equal((await server.get('/api/v1/certificates/later', key.raw)).status, 200);
  });
});

suite('a certificate outside the allowlist', () => {
  test('is indistinguishable from one that does not exist, at any endpoint and by any method', async (t) => {
    const { server, endpoints } = await prepared(t);
    const key = await makeKey(server.vault, { certificates: [asked] });
    for (const { method, path, namesCertificate } of endpoints) {
      if (!namesCertificate) continue;
      for (const verb of method === 'GET' ? ['GET', 'HEAD'] : [method]) {
        const answers = [];
        for (const name of [hidden, 'absent-altogether', 'no name at all', '*', '.', 'x'.repeat(129)]) {
          const lines = [...bearer(key), 'If-None-Match: *'];
          answers.push(comparable(await server.raw(verb, path(name), lines)));
        }
        assert.equal(answers[0]?.status, 403, `${verb} ${path('')}`);
        for (const answer of answers) assert.deepEqual(answer, answers[0], `${verb} ${path('')}`);
      }
    }
  });

  test('stays out of lists, links and pages', async (t) => {
    const { server } = await prepared(t);
    for (const name of ['a', 'z']) await makeCertificate(server.vault, name);
    const key = await makeKey(server.vault, { certificates: ['a', 'z'] });
    const first = await server.get('/api/v1/certificates?limit=1', key.raw);
    const link = first.headers.get('Link') ?? '';
    assert.match(link, /after=a>/);
    const rest = await server.get(`/api/v1/certificates?after=${hidden.slice(0, 3)}`, key.raw);
    const text = (await first.text()) + link + (await rest.text()) + (rest.headers.get('Link') ?? '');
    assert(!text.includes(hidden));
  });
});

suite('every endpoint for administrators', () => {
  test('gives the same 403 to all others: anonymous, unknown, expired and valid keys, and invalid sessions', async (t) => {
    for (const options of [{}, { administrators: alice.administrators }]) {
      const server = await checkedServer(t, options);
      const endpoints = administratorEndpoints(await makeAccount(server.vault));
      assert(endpoints.length >= 8);
      const [good, revoked] = [await makeKey(server.vault), await revokedKey(server)];
      const expired = await expiredKey(server);
      // Of refusals of one key, a hundred an hour are recorded in full.
      const paired = await makeKey(server.vault);
      const keys = { good, revoked, expired };
      const callers = {
        ...strangers(good),
        ...Object.fromEntries(Object.entries(keys).map(([what, key]) => [`a ${what} key`, bearer(key)])),
        'an unknown session': ['Cookie: vault_session=token-of-mallory'],
        'two sessions': [`${alice.line}; vault_session=token-of-mallory`],
        'a good key and a session': [...bearer(paired), alice.line],
        'an empty header and a session': ['Authorization:', alice.line],
        'another scheme and a session': ['Authorization: Basic YTpi', alice.line],
        'a wrong key and a session': ['Authorization: Bearer nonsense', alice.line],
      };
      const first = await server.raw('GET', '/api/v1/acme-accounts');
      assert.equal(first.status, 403);
      assert.equal(JSON.parse(first.body).code, 'forbidden');
      assert.match(first.body, /requires an administrator session/);
      for (const { method, path } of endpoints) {
        server.world.advance(minute);
        for (const [caller, lines] of Object.entries(callers)) {
          const place = `${method} ${path} with ${caller}`;
          const reply = await server.raw(method, `${path}?nonsense=1`, lines);
          assert.deepEqual(comparable(reply), comparable(first), place);
          assertSilent(reply, [good, revoked, expired], place);
        }
      }
      const detail = { code: 'forbidden', needs: 'administrator' };
      const recorded = [
        [good.actor, detail],
        [revoked.actor, { ...detail, reason: 'revoked' }],
        [expired.actor, { ...detail, reason: 'expired' }],
        [paired.actor, detail],
      ];
      assert.deepEqual(
        eventsOf(server.dataDir, 'access.refuse').map((event) => [event.actor, event.resource, event.detail]),
        endpoints.flatMap(({ method, path }) =>
          recorded.map(([actor, why]) => [actor, `${method} ${path}`, why]),
        ),
      );
      assert.doesNotMatch(server.log.lines.join('\n'), /vk_|token-of|"level":"(warn|error)"/);
    }
  });
});
