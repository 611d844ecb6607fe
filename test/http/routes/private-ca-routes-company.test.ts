/**
 * A private CA under the root of a company, over HTTP: refusals first, then what is issued, as openssl verifies it with
 * that root alone.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import {
  companyIssuing,
  companyRoot,
  companySigns,
  confinedCompany,
  defaultExtensions,
} from '../../harness/ca/company-ca.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { type Administration, administration } from '../../harness/http/administration.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';
import { tlsClients } from './tls-clients.ts';

type Problem = { code: string; detail: string; errors?: { path: string; message: string }[] };
type CaCertificate = { role: string; state: string; subject: string; key: string };
type Import = {
  root: string;
  issues_until: string;
  former_root_until: string | null;
  renewals: number;
  certificates: CaCertificate[];
};

const pems = (text: string) => text.split(/(?<=-----END CERTIFICATE-----\n)/).filter((pem) => pem !== '');
const subjects = (text: string) =>
  pems(text).map((pem) => new X509Certificate(pem).subject.split('\n').at(-1));

async function prepared(t: TestContext) {
  // The company's certificates are made with the clock of the machine.
  const world = new TestWorld(Date.now() + 60_000);
  const admin = await administration(t, { world });
  const dir = tempDir(t);
  const path = (part: string, issuer: string) => `/api/v1/issuers/${issuer}/ca/${part}`;
  const request = async (body = {}, issuer = 'local-ca') =>
    (await admin.expect<{ csr: string }>(200, 'POST', path('csr', issuer), body)).csr;
  const take = (chain: string, more = {}, issuer = 'local-ca') =>
    admin.expect<Import>(200, 'POST', path('import', issuer), { chain, ...more });
  const refused = (chain: string, status = 400, issuer = 'local-ca') =>
    admin.expect<Problem>(status, 'POST', path('import', issuer), { chain });
  const create = (name: string, domain: string, more = {}) =>
    admin.expect<Problem>('detail' in more ? 400 : 201, 'POST', '/api/v1/certificates', {
      name,
      domains: [domain],
      issuer: 'local-ca',
      ...more,
    });
  const text = async (at: string) => {
    const reply = await admin.ask('GET', at);
    assert.equal(reply.status, 200, reply.text);
    return reply.text;
  };
  return { ...admin, world, dir, request, take, refused, create, text };
}

/** Throws unless openssl verifies the certificate with the company's root alone, and with the CRL of its issuer. */
async function assertVerifies(
  { ask, dir }: Pick<Administration, 'ask'> & { readonly dir: string },
  name: string,
  crlPath = '/client/ca-crls.pem',
): Promise<string> {
  const { text } = await ask('GET', `/api/v1/certificates/${name}/fullchain.crt`);
  const crls = await ask('GET', crlPath);
  const [leaf = '', ...chain] = pems(text);
  writeFileSync(join(dir, 'leaf.pem'), leaf);
  writeFileSync(join(dir, 'chain.pem'), chain.join(''));
  writeFileSync(join(dir, 'crls.pem'), crls.text);
  const roots = ['-no-CAfile', '-no-CApath', '-no-CAstore', '-CAfile', 'root.crt', '-untrusted', 'chain.pem'];
  openssl(dir, 'verify', '-x509_strict', '-purpose', 'sslserver', ...roots, 'leaf.pem');
  openssl(dir, 'verify', '-x509_strict', '-crl_check', '-CRLfile', 'crls.pem', ...roots, 'leaf.pem');
  return text;
}

suite('importing a CA certificate', () => {
  test(
    'is rejected without a pending request, for another key or an invalid chain, and changes nothing',
    needs('openssl'),
    async (t) => {
      const admin = await prepared(t);
      const { dir, refused, request, text, expect, server } = admin;
      const { root, issuing } = confinedCompany(dir);
      const roots = await text('/client/ca.crt');
      const whole = issuing.pem + root.pem;
      assert.match(
        (await refused(whole)).detail,
        /^There is no pending request for private CA local-ca\. Create one, and import the certificate/,
      );
      const csr = await request();
      assert.match((await refused(whole)).detail, /^None of the certificates in the file has the key/);
      assert.match((await refused('x')).detail, /^No certificate found in the file/);
      assert.match((await refused('')).detail, /chain is empty/);
      assert.match((await refused('x'.repeat(65_537))).detail, /chain is larger than 64 KiB/);
      const own = companySigns(dir, issuing, csr);
      assert.match(
        (await refused(own + issuing.pem)).detail,
        /^The chain is incomplete: .*Example Corp Root/,
      );
      const leafOnly = companySigns(dir, issuing, csr, {
        extensions: ['basicConstraints=critical,CA:FALSE'],
      });
      assert.match((await refused(leafOnly + whole)).detail, /is not a CA certificate/);
      // A key that was replaced is void.
      const other = await request({ new: true });
      assert.notEqual(other, csr);
      assert.match((await refused(own + whole)).detail, /^None of the certificates in the file has the key/);
      assert.equal(await text('/client/ca.crt'), roots);
      assert.deepEqual(eventsOf(server.dataDir, 'issuer.ca_import'), []);
      assert.equal(eventsOf(server.dataDir, 'issuer.ca_request').length, 2);
      await expect(404, 'POST', '/api/v1/issuers/none/ca/csr', {});
      await refused(whole, 404, 'none');
    },
  );

  test(
    'is rejected while certificates have names the company CA does not permit, unless forced',
    needs('openssl'),
    async (t) => {
      const { dir, create, request, refused, take, expect } = await prepared(t);
      await create('web', 'www.corp.example');
      await create('outside', 'www.example.com');
      const { root, issuing } = confinedCompany(dir);
      const chain = companySigns(dir, issuing, await request()) + issuing.pem + root.pem;
      const { detail, errors } = await refused(chain);
      assert.match(
        detail,
        /^Certificates that local-ca renews have names that the company's CA does not permit: outside \(www\.example\.com\)\. Move them/,
      );
      assert.equal(errors?.[0]?.path, 'chain');
      await take(chain, { force: true });
      const { detail: reason } = await expect<Problem>(400, 'POST', '/api/v1/certificates', {
        name: 'other',
        domains: ['db.corp.example', 'x.secret.corp.example'],
        issuer: 'local-ca',
      });
      assert.equal(
        reason,
        'Issuer local-ca cannot issue for x.secret.corp.example: the certificate CN=Example Corp Issuing CA,O=Example Corp above it does not permit it.',
      );
    },
  );
});

suite('a private CA under a company root', () => {
  test(
    'issues certificates that verify with that root alone, and serves both roots during the overlap',
    needs('openssl'),
    async (t) => {
      const admin = await prepared(t);
      const { dir, world, create, request, take, text, server, expect } = admin;
      await create('old', 'old.corp.example', { lifetime: '30d' });
      const former = await text('/client/ca.crt');
      const { root, issuing } = confinedCompany(dir);
      const csr = await request();
      assert.equal(await request(), csr);
      const pending = await expect<{ is_new: boolean }>(200, 'POST', '/api/v1/issuers/local-ca/ca/csr', {});
      assert.equal(pending.is_new, false);
      const own = companySigns(dir, issuing, csr, { days: 1000 });
      const imported = await take(root.pem + own + issuing.pem);
      assert.deepEqual(
        [imported.renewals, imported.root],
        [1, new X509Certificate(root.pem).subject.split('\n').toReversed().join()],
      );
      assert.equal(Date.parse(imported.issues_until), new X509Certificate(own).validToDate.getTime());
      const until = Date.parse(imported.former_root_until ?? '');
      assert(until >= world.now() + 29 * day && until <= world.now() + 31 * day);
      assert.deepEqual(
        imported.certificates.slice(0, 2).map(({ role, state, key }) => `${role} ${state} ${key}`),
        ['root current company', 'intermediate current vault'],
      );
      assert.equal(await text('/client/ca.crt'), former + root.pem);

      await create('web', 'www.corp.example');
      const fullchain = await assertVerifies(admin, 'web');
      const { judge } = await tlsClients(t, 'www.corp.example');
      const key = await text('/api/v1/certificates/web/private.key');
      for (const [client, verdict] of Object.entries(await judge({ fullchain, key }, root.pem)))
        assert.equal(verdict, 'accepted', client);
      assert.equal(pems(fullchain)[1], own);
      assert.equal(pems(fullchain)[2], issuing.pem);
      assert.equal(pems(fullchain).length, 3);
      // The CRLs of the vault's own CA certificates: not those of the company.
      assert.equal((await text('/client/ca-crls.pem')).match(/BEGIN X509 CRL/g)?.length, 3);

      const { detail } = await expect<Problem>(400, 'POST', '/api/v1/issuers/local-ca/ca/rotate');
      assert.match(detail, /The root of local-ca belongs to another CA/i);

      const [event] = eventsOf(server.dataDir, 'issuer.ca_import');
      assert.equal((event as { resource?: string }).resource, 'issuer:local-ca');
      world.advance(until - world.now() + 1);
      assert.equal(await text('/client/ca.crt'), root.pem);
    },
  );

  test(
    'the next intermediate replaces the one before, and a leaf never outlives it',
    needs('openssl'),
    async (t) => {
      const admin = await prepared(t);
      const { dir, create, request, take, world } = admin;
      const { root, issuing } = confinedCompany(dir);
      await take(companySigns(dir, issuing, await request(), { days: 2000 }) + issuing.pem + root.pem);
      const second = await request();
      const own = companySigns(dir, issuing, second, { days: 20 });
      const again = await take(own + issuing.pem + root.pem);
      assert.deepEqual([again.former_root_until, again.renewals], [null, 0]);
      await create('web', 'www.corp.example', { lifetime: '90d' });
      const fullchain = await assertVerifies(admin, 'web');
      assert.equal(pems(fullchain)[1], own);
      const [leaf = ''] = pems(fullchain);
      assert.equal(new X509Certificate(leaf).validTo, new X509Certificate(own).validTo);
      world.advance(21 * day);
      const { detail } = await admin.expect<Problem>(400, 'POST', '/api/v1/certificates', {
        name: 'late',
        domains: ['late.corp.example'],
        issuer: 'local-ca',
      });
      assert.match(
        detail,
        /^The intermediate of issuer local-ca expired at 20.*"vault ca csr --issuer local-ca"/,
      );
    },
  );

  test(
    'issues under the company imported last, even if it was imported before',
    needs('openssl'),
    async (t) => {
      const admin = await prepared(t);
      const { create, request, take, text } = admin;
      await admin.expect(201, 'POST', '/api/v1/issuers', {
        type: 'local-ca',
        name: 'staging-ca',
        path_length: 2,
      });
      const crls = '/client/cas/staging-ca/ca-crls.pem';
      const [one, two] = [tempDir(t), tempDir(t)] as const;
      const first = companyRoot(one, 'root', { subject: '/CN=First Root' });
      const upper = companyIssuing(one, first, 'upper');
      const lower = companyIssuing(one, upper, 'lower');
      const other = companyRoot(two, 'root', { subject: '/CN=Second Root' });
      const by = async (dir: string, signer: typeof first, above: string) => {
        const csr = await request({}, 'staging-ca');
        return take(
          companySigns(dir, signer, csr, { extensions: defaultExtensions }) + above,
          {},
          'staging-ca',
        );
      };
      await by(one, lower, lower.pem + first.pem + upper.pem);
      await create('a', 'a.example', { issuer: 'staging-ca' });
      await by(two, other, other.pem);
      await create('b', 'b.example', { issuer: 'staging-ca' });
      assert.equal(pems(await assertVerifies({ ...admin, dir: two }, 'b', crls)).length, 2);
      await by(one, lower, first.pem + upper.pem + lower.pem);
      await create('c', 'c.example', { issuer: 'staging-ca' });
      assert.equal(pems(await assertVerifies({ ...admin, dir: one }, 'c', crls)).length, 4);
      const roots = subjects(await text('/client/cas/staging-ca/ca.crt'));
      assert.deepEqual(roots, ['CN=Second Root', 'CN=First Root']);
    },
  );
});
