/** DNS providers over HTTP: their credentials go in and never come out, and no session becomes a shell. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { administration } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { hastyWorld, lendZone, memoryZone, withZone } from '../../harness/issuance/engine-vault.ts';

const path = '/api/v1/dns-providers';
const token = 't0ken-1234-very-secret';
const body = { name: 'cf', type: 'cloudflare', zones: ['example.test'], config: { api_token: token } };

const asked = JSON.stringify({ domain: 'www.example.test' });
const asAlice = {
  method: 'POST',
  headers: { ...alice.init.headers, 'Content-Type': 'application/json' },
};

type Problem = { code: string; detail: string; errors?: { path: string }[] };

async function prepared(t: TestContext) {
  const zone = memoryZone();
  const admin = await administration(t, {
    world: hastyWorld(),
    inPlaceOf: (vault) => withZone(vault, zone),
  });
  return { ...admin, zone };
}

suite('a DNS provider over HTTP', () => {
  test('is rejected for missing or unknown settings without echoing the token', async (t) => {
    const { expect, said, server } = await prepared(t);
    const wrong: [object, RegExp][] = [
      [{ ...body, config: {} }, /^Invalid settings for cloudflare: api_token is missing/],
      [{ ...body, config: { api_token: `${token} ` } }, /without spaces/],
      [{ ...body, config: { api_token: token, [token]: 1 } }, /unknown|no name/],
      [{ ...body, type: 'cloudflair' }, /Did you mean "cloudflare"/],
      [{ ...body, zones: ['192.0.2.1'] }, /not a zone/],
      [{ ...body, zones: [] }, /at least one zone/],
      [{ ...body, secret: token }, /secret/],
    ];
    for (const [sent, detail] of wrong) {
      assert.match((await expect<Problem>(400, 'POST', path, sent)).detail, detail);
    }
    const { errors } = await expect<Problem>(400, 'POST', path, { ...body, config: {} });
    assert.deepEqual(
      errors?.map((one) => one.path),
      ['config.api_token'],
    );
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert(!said().includes(token), said());
    assert(!server.log.lines.join('\n').includes(token));
  });

  test('is rejected if its type runs a program, which can only be added on the host', async (t) => {
    const { expect } = await prepared(t);
    const hooks = [
      { type: 'exec', config: { command: '/bin/true' } },
      { type: 'lexicon', config: { provider: 'gandi', program: '/bin/true' } },
      { type: 'acme-sh', config: { script: 'dns_x.sh', program: '/bin/true' } },
    ];
    for (const hook of hooks) {
      const { detail, errors } = await expect<Problem>(400, 'POST', path, { ...body, ...hook });
      assert.match(detail, /only be added on the vault's host/);
      assert.deepEqual(errors?.[0]?.path, 'type');
    }
    assert.deepEqual(await expect(200, 'GET', path), []);
  });

  test('is listed without its credentials, which are sealed, and removed', async (t) => {
    const { expect, said, server } = await prepared(t);
    const view = {
      name: 'cf',
      type: 'cloudflare',
      zones: ['example.test'],
      created_at: '2026-11-21T12:00:00Z',
    };
    assert.deepEqual(await expect(201, 'POST', path, body), view);
    assert.deepEqual(await expect(200, 'GET', path), [view]);
    assert.equal(
      (await expect<Problem>(400, 'POST', path, body)).detail,
      'A DNS provider named cf already exists. Choose another name, or remove the existing provider.',
    );
    await expect(200, 'GET', '/api/v1/audit-events');
    assert(!said().includes(token));
    const stored = outside(server.dataDir, (db) => {
      const rows = db.prepare('select * from dns_providers').all() as { sealed_secret: Buffer }[];
      return rows.map(({ sealed_secret }) => sealed_secret.toString('latin1')).join();
    });
    assert(stored.length > 20 && !stored.includes(token));
    await expect(204, 'DELETE', `${path}/cf`);
    assert.equal((await expect<Problem>(404, 'DELETE', `${path}/cf`)).code, 'not_found');
    const actions = ['dns_provider.create', 'dns_provider.delete'];
    assert.deepEqual(
      actions.flatMap((action) => eventsOf(server.dataDir, action).map(({ actor }) => actor)),
      ['admin:alice', 'admin:alice'],
    );
  });
});

suite('the test of a DNS provider', () => {
  test('reports its steps and removes its record', async (t) => {
    const { expect, zone, server } = await prepared(t);
    await expect(201, 'POST', path, body);
    await lendZone(server.vault, zone);
    const told = await expect<{ domain: string; steps: { text: string }[] }>(200, 'POST', `${path}/cf/test`, {
      domain: '*.www.example.test',
    });
    assert.match(
      told.steps.map(({ text }) => text).join('; '),
      /^Creating .*; Waiting .*; Record is visible; Record removed$/,
    );
    assert.deepEqual(zone.done.length, 2);
    assert.equal(zone.records.size, 0);
  });

  test('rejects other zones, IP addresses and unknown providers, and reports provider errors', async (t) => {
    const { expect, zone, server } = await prepared(t);
    await expect(201, 'POST', path, body);
    await expect(201, 'POST', path, { name: 'hand', type: 'manual', zones: ['example.org'] });
    const test = (name: string, domain: string, status = 400) =>
      expect<Problem>(status, 'POST', `${path}/${name}/test`, { domain });
    assert.match((await test('cf', 'www.example.com')).detail, /in none of the zones of cf: example\.test/);
    for (const domain of ['192.0.2.1', 'not a domain', '']) {
      assert.equal((await test('cf', domain)).errors?.[0]?.path, 'domain');
    }
    assert.match((await test('hand', 'www.example.org')).detail, /manual provider/);
    await test('absent', 'www.example.test', 404);
    const troubles: Error[] = [
      new Error('a secret of the inside'),
      new DnsProviderError('Cloudflare: the token may not do this'),
    ];
    const present = async () => {
      throw troubles.shift();
    };
    await lendZone(server.vault, { ...zone, provider: { present, remove: async () => undefined } });
    const failed = await server.get(`${path}/cf/test`, undefined, { ...asAlice, body: asked });
    assert.equal(failed.status, 500, 'what no provider says is a bug, and stays inside');
    const { detail } = await test('cf', 'www.example.test');
    assert.equal(detail, 'Cloudflare: the token may not do this.');
  });
});

test('DNS provider types list their settings as JSON Schema', async (t) => {
  const { expect } = await prepared(t);
  type Kind = { type: string; command_line_only: boolean; config: { type?: string; properties?: object } };
  const kinds = await expect<Kind[]>(200, 'GET', '/api/v1/dns-provider-types');
  assert.equal(kinds.length, 15);
  for (const { type, config } of kinds) assert.equal(config.type, 'object', type);
  const cloudflare = kinds.find(({ type }) => type === 'cloudflare');
  assert.deepEqual(Object.keys(cloudflare?.config.properties ?? {}), ['api_token', 'base_url']);
  assert.deepEqual(
    kinds.filter((kind) => kind.command_line_only).map(({ type }) => type),
    ['exec', 'lexicon', 'acme-sh'],
  );
});
