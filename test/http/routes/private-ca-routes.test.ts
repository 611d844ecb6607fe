/**
 * The rotation of private CAs over HTTP: clients that trust either root accept every certificate during the whole
 * overlap.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { type Administration, administration } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';
import { tlsClients, type Verdicts } from './tls-clients.ts';

const host = 'www.example.com';

type Problem = { code: string; detail: string };
type CaCertificate = {
  role: string;
  state: string;
  subject: string;
  key: string;
  needed_until: string | null;
  pem: string;
};
type Rotation = {
  former_root_until: string;
  is_tight: boolean;
  renewals: number;
  certificates: CaCertificate[];
};

const pems = (text: string) => text.split(/(?<=-----END CERTIFICATE-----\n)/).filter((pem) => pem !== '');

async function prepared(t: TestContext) {
  // Programs of others read the clock of the machine.
  const admin = await administration(t, { world: new TestWorld(Date.now()) });
  const text = async (path: string, status = 200) => {
    const reply = await admin.ask('GET', path);
    assert.equal(reply.status, status, reply.text);
    return reply.text;
  };
  const rotate = (issuer = 'local-ca') =>
    admin.expect<Rotation>(200, 'POST', `/api/v1/issuers/${issuer}/ca/rotate`);
  const create = (name: string, issuer = 'local-ca', more = {}) =>
    admin.expect(201, 'POST', '/api/v1/certificates', { name, domains: [host], issuer, ...more });
  return { ...admin, text, rotate, create };
}

/** What a server with this certificate serves. */
async function served({ ask }: Pick<Administration, 'ask'>, name: string) {
  const part = async (file: string) => (await ask('GET', `/api/v1/certificates/${name}/${file}`)).text;
  return { fullchain: await part('fullchain.crt'), key: await part('private.key') };
}

function assertAll(verdicts: Verdicts, expected: 'accepted' | 'refused', what: string): void {
  assert(Object.keys(verdicts).length > 0);
  for (const [client, verdict] of Object.entries(verdicts)) {
    assert.equal(verdict.slice(0, expected.length), expected, `${client}, ${what}: ${verdict}`);
  }
}

suite('a rotation', () => {
  test('keeps clients working that trust the former root, both roots, or the new root with cross-certificates', async (t) => {
    const admin = await prepared(t);
    const { text, rotate, create, server } = admin;
    const { judge } = await tlsClients(t, host);
    await create('old', 'local-ca', { lifetime: '30d' });
    const old = await served(admin, 'old');
    const former = await text('/client/ca.crt');
    assertAll(await judge(old, former), 'accepted', 'before the rotation');
    await text('/client/ca-cross.crt', 404);

    const { former_root_until: until } = await rotate();
    assert.equal(Date.parse(until) % day, 0);
    const both = await text('/client/ca.crt');
    assert.deepEqual(pems(both).length, 2);
    assert.equal(pems(both)[0], former);
    const [, current = ''] = pems(both);
    const links = await text('/client/ca-cross.crt');
    await create('new');
    const fresh = await served(admin, 'new');
    assert.equal(pems(fresh.fullchain).length, 3);

    const stages = {
      'the old certificate, the former root': [old, former],
      'the old certificate, both roots': [old, both],
      'the old certificate, the new root and the links': [old, current + links],
      'the new certificate, the former root': [fresh, former],
      'the new certificate, both roots': [fresh, both],
      'the new certificate, the new root': [fresh, current],
    } as const;
    for (const [what, [chain, roots]] of Object.entries(stages)) {
      assertAll(await judge(chain, roots), 'accepted', what);
    }
    // Clients that accept anything would accept these too.
    const stranger = await prepared(t);
    const other = await stranger.text('/client/ca.crt');
    assertAll(await judge(fresh, other), 'refused', 'the root of another vault');
    assertAll(await judge(old, current), 'refused', 'the old certificate, the new root alone');

    server.world.advance(Date.parse(until) - server.world.now());
    assert.equal(await text('/client/ca.crt'), current);
    assertAll(await judge(fresh, await text('/client/ca.crt')), 'accepted', 'after the overlap');
  });

  test('is recorded, lists current and former certificates, and staggers automatic renewals', async (t) => {
    const { rotate, create, expect, server } = await prepared(t);
    await create('one');
    await create('two');
    await create('by-hand');
    await expect(200, 'PATCH', '/api/v1/certificates/by-hand', { auto_renew: false });
    const before = await expect<CaCertificate[]>(200, 'GET', '/api/v1/issuers/local-ca/ca');
    assert.deepEqual(
      before.map(({ role, state, key }) => `${role} ${state} ${key}`),
      ['root current vault', 'intermediate current vault'],
    );
    const { renewals, certificates, former_root_until: until, is_tight } = await rotate();
    assert.deepEqual([renewals, is_tight], [2, false]);
    assert.deepEqual(
      certificates.map(({ role, state, needed_until }) => [role, state, needed_until]),
      [
        ['root', 'current', null],
        ['intermediate', 'current', null],
        ['root', 'former', until],
        ['intermediate', 'former', until],
      ],
    );
    assert.equal(certificates[2]?.pem, before[0]?.pem);
    const [event] = eventsOf(server.dataDir, 'issuer.rotate');
    assert.equal(event?.resource, 'issuer:local-ca');
    const held = await server.vault.db.reader
      .selectFrom('renewals')
      .select(['held_until', 'hold_reason'])
      .where('status', '=', 'queued')
      .orderBy('id')
      .execute();
    assert.deepEqual(
      held.map(({ held_until }) => held_until),
      [null, server.world.now() + 60_000],
    );
  });

  test('is rejected until the last certificate under the former root has expired', async (t) => {
    const { rotate, create, expect, server, text } = await prepared(t);
    const again = () => expect<Problem>(400, 'POST', '/api/v1/issuers/local-ca/ca/rotate');
    await create('web');
    const { former_root_until: until } = await rotate();
    const { code, detail } = await again();
    assert.equal(code, 'invalid_request');
    assert.equal(
      detail,
      `The root of local-ca was replaced before, and clients may trust only the former one. The last certificate under it expires at ${until}. Rotate after that.`,
    );
    const before = await text('/client/ca.crt');
    server.world.advance(Date.parse(until) - server.world.now());
    await create('later');
    await rotate();
    const after = pems(await text('/client/ca.crt'));
    assert.equal(after[0], pems(before)[1]);
  });

  test('appends a generation to the name of a CA, and does not change other CAs', async (t) => {
    const { rotate, expect, create, text } = await prepared(t);
    const body = {
      type: 'local-ca',
      name: 'staging',
      common_name: 'Staging CA',
      permit_domains: ['example.com'],
    };
    await expect(201, 'POST', '/api/v1/issuers', body);
    const builtIn = await text('/client/ca.crt');
    await create('web', 'staging');
    const { certificates } = await rotate('staging');
    assert.deepEqual(
      certificates.filter(({ role }) => role === 'root').map(({ subject }) => subject),
      ['CN=Staging CA G2', 'CN=Staging CA'],
    );
    assert.equal(pems(await text('/client/cas/staging/ca.crt')).length, 2);
    assert.equal(await text('/client/ca.crt'), builtIn);
    const names = (await text('/client/cas/staging/ca-cross.crt')).trim();
    assert.deepEqual(
      pems(`${names}\n`)
        .map((pem) => new X509Certificate(pem))
        .map(({ subject, issuer }) => `${subject} by ${issuer}`),
      ['CN=Staging CA by CN=Staging CA G2', 'CN=Staging CA G2 by CN=Staging CA'],
    );
    const outside = { name: 'x', domains: ['www.example.net'], issuer: 'staging' };
    await expect(400, 'POST', '/api/v1/certificates', outside);
  });

  test('returns 404 for an unknown issuer and for an ACME CA, as do the other endpoints of its CA', async (t) => {
    const { expect, server } = await prepared(t);
    await silentIssuer(server.vault, 'acme');
    for (const name of ['nothing', 'acme']) {
      const ca = `/api/v1/issuers/${name}/ca`;
      await expect(404, 'GET', ca);
      await expect(404, 'POST', `${ca}/rotate`);
      await expect(404, 'POST', `${ca}/csr`, {});
      await expect(404, 'POST', `${ca}/import`, { chain: 'x' });
    }
  });
});
