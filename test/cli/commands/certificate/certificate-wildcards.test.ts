/** Wildcards from an ACME CA: refused at once where no DNS provider could create their challenge record. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { CertificateView } from '../../../../src/domain/certificates/certificate-views.ts';
import { fakeDns } from '../../../harness/dns/fake-dns.ts';
import { commandLineWithCa } from '../../../harness/processes/command-line.ts';

const missing = (name: string, zone: string) =>
  [
    `vault: no DNS provider has a zone for ${name}; add one, or choose challenge dns-01 if the CA issues to your account without a challenge`,
    `  Fix: vault dns-provider add --name NAME --type TYPE --zone ${zone} --secret-file FILE\n`,
  ].join('\n');

async function wildcardVault(t: TestContext) {
  const line = await commandLineWithCa(t);
  const names = async () =>
    (await line.json<CertificateView[]>('certificate', 'list')).map(({ name }) => name);
  const byHand = (zone: string) =>
    line.done('dns-provider', 'add', '--name', zone, '--type=manual', '--zone', zone);
  return { ...line, names, byHand };
}

test('a wildcard without a DNS provider is rejected with the command that adds one, and nothing is created', async (t) => {
  const { refused, names, done, byHand } = await wildcardVault(t);
  const create = ['certificate', 'create', 'wild', '--issuer=ca', '--domain=example.com'];
  await refused([...create, '--domain=*.www.example.co.uk'], missing('*.www.example.co.uk', 'example.co.uk'));
  assert.deepEqual(await names(), []);
  await byHand('example.co.uk');
  await done(...create, '--domain=*.www.example.co.uk');
});

test('the private CA, an explicit dns-01 challenge and an existing wildcard need no DNS provider', async (t) => {
  const { done, names, refused } = await wildcardVault(t);
  await done('certificate', 'create', 'inside', '--domain=*.example.com');
  await done('certificate', 'create', 'known', '--domain=*.example.com', '--issuer=ca', '--challenge=dns-01');
  await done('certificate', 'update', 'known', '--no-auto-renew');
  await done('certificate', 'update', 'known', '--domain=*.example.com', '--domain=example.com');
  await refused(
    ['certificate', 'update', 'known', '--challenge=none'],
    missing('*.example.com', 'example.com'),
  );
  assert.deepEqual(await names(), ['inside', 'known']);
});

test('update rejects a new wildcard, and an ACME issuer for a wildcard, without a DNS provider', async (t) => {
  const { done, refused, json, byHand } = await wildcardVault(t);
  const update = (...args: string[]) => ['certificate', 'update', 'web', ...args];
  await done('certificate', 'create', 'web', '--domain=*.example.com');
  await refused(update('--issuer=ca'), missing('*.example.com', 'example.com'));
  await byHand('example.com');
  await done(...update('--issuer=ca'));
  await done('dns-provider', 'remove', 'example.com');
  await done(...update('--domain=*.example.com', '--domain=a.example.org'));
  await refused(
    update('--domain=*.example.com', '--domain=*.example.org'),
    missing('*.example.org', 'example.org'),
  );
  const { domains } = await json<CertificateView>('certificate', 'show', 'web');
  assert.deepEqual(domains, ['*.example.com', 'a.example.org']);
});

test("a CNAME into a provider's zone is accepted, as is a wildcard whose lookup fails", async (t) => {
  const { done, refused, byHand } = await wildcardVault(t);
  const dns = await fakeDns(t, { 'CNAME _acme-challenge.corp.test': ['corp.acme.test'] });
  await byHand('acme.test');
  const create = (name: string) => [
    ...['certificate', 'create', name, '--issuer=ca', '--resolver', dns.server],
    ...['--domain', `*.${name}`],
  ];
  await done(...create('corp.test'));
  await refused(create('other.test'), missing('*.other.test', 'other.test'));
  dns.trouble = () => 'SERVFAIL';
  await done(...create('unknown.test'));
});
