/** Names proved by records: the executable, Pebble as the CA and BIND as the name server of both. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { realWorld } from '../../src/base/world.ts';
import { rfc2136 } from '../../src/dns/providers/rfc2136.ts';
import { type AcmeVault, acmeVault, frontedVault, needsAcme } from '../harness/acme/vault.ts';
import type { Bind } from '../harness/dns/bind.ts';
import { fakeContext } from '../harness/dns/fake-provider.ts';
import { eventually } from '../harness/eventually.ts';

const apex = '_acme-challenge.example.test';

/** Puts a record into BIND, as a person with the key of the zone does. */
async function putRecord({ server, keyName, algorithm, secret }: Bind, name: string, value: string) {
  const config = rfc2136.config.parse({ server, key_name: keyName, algorithm, secret });
  const provider = rfc2136.create(config, { ...fakeContext(), world: realWorld, log: silentLog });
  const record = { name, value, zone: 'example.test', domain: 'example.test' };
  await provider.present(record, new AbortController().signal);
}

/** The steps of the last renewal of a certificate. */
function stepsOf({ query }: AcmeVault, name: string): string {
  const [row] = query<{ steps: string | null }>(
    'select steps from renewals where certificate_id = (select id from certificates where name = ?) order by id desc',
    name,
  );
  return row?.steps ?? '';
}

suite('records', needsAcme(), () => {
  test('an apex and its wildcard get two TXT values at one name, and an existing value stays', async (t) => {
    const { vault, front } = await frontedVault(t);
    await vault.addDnsProvider();
    await putRecord(vault.dns, apex, 'somebody else');
    const server = await vault.serve();
    const client = await vault.client();
    const held = front.hold('request', /^\/chalZ\//);
    const issued = vault.issue('wild', '--domain', 'example.test', '--domain', '*.example.test');
    await held.reached;
    assert.equal((await vault.dns.txt(apex)).length, 3);
    held.release();
    await issued;
    const { body } = await client(server, 'wild', 'certificate.crt');
    const { subjectAltName = '' } = new X509Certificate(body);
    assert.deepEqual(subjectAltName.split(', ').sort(), ['DNS:*.example.test', 'DNS:example.test']);
    assert.deepEqual(await vault.dns.txt(apex), ['somebody else']);
    assert.deepEqual(vault.query('select * from acme_challenges'), []);
  });

  test('an order with forty names succeeds at a CA that rejects a third of the nonces', async (t) => {
    const vault = await acmeVault(t, { nonceReject: 33, alternateRoots: 2, authzReuse: 0, retryAfter: 1 });
    await vault.addDnsProvider();
    const server = await vault.serve();
    const names = Array.from({ length: 40 }, (_, index) => `n${index}.example.test`);
    await vault.issue('many', ...names.flatMap((name) => ['--domain', name]), '--challenge', 'dns-01');
    const client = await vault.client();
    const { body } = await client(server, 'many', 'certificate.crt');
    const { subjectAltName = '' } = new X509Certificate(body);
    assert.deepEqual(subjectAltName.split(', ').sort(), names.map((name) => `DNS:${name}`).sort());
    assert.match(stepsOf(vault, 'many'), /presenting 40 challenge records through bind/);
    await eventually('no record is left', async () => {
      const left = await Promise.all(names.map((name) => vault.dns.txt(`_acme-challenge.${name}`)));
      return left.flat().length === 0 ? true : undefined;
    });
    await eventually('and none is known', () =>
      vault.query('select id from acme_challenges').length === 0 ? true : undefined,
    );
  });

  test('a name whose challenges are delegated by CNAME into another zone is validated there', async (t) => {
    const records = ['_acme-challenge.app CNAME app.acme.test.'];
    const vault = await acmeVault(t, { records });
    await vault.addDnsProvider();
    const provider = ['dns-provider', 'test', '--name', 'bind', '--resolver', vault.dns.server];
    assert.match(
      await vault.done(...provider, '--domain', 'app.example.test'),
      /bind can present dns-01 challenges for app/,
    );
    await vault.serve();
    const made = await vault.issue('app', '--domain', 'app.example.test');
    assert.match(made, /^app: version 1, valid until /);
    assert.match(stepsOf(vault, 'app'), /presenting app\.acme\.test through bind/);
    assert.deepEqual(await vault.dns.txt('app.acme.test'), []);
  });

  test('the manual provider says which record it waits for, and continues when the record exists', async (t) => {
    const vault = await acmeVault(t);
    await vault.done('dns-provider', 'add', '--name', 'me', '--type', 'manual', '--zone', 'example.test');
    await vault.serve();
    const waiting = vault.run(
      ...['certificate', 'create', '--name', 'hand', '--domain', 'example.test', '--issuer', 'pebble'],
      '--wait',
    );
    const value = await eventually('the record is shown', () => {
      const known = vault.query<{ value: string }>('select record_value as value from acme_challenges');
      return stepsOf(vault, 'hand').includes('waiting for you') ? known[0]?.value : undefined;
    });
    await putRecord(vault.dns, apex, value);
    const { code, stdout, stderr } = await waiting;
    assert.equal(code, 0, stderr);
    assert.ok(stderr.includes(`waiting for you to create the record ${apex} TXT "${value}"`), stderr);
    assert.match(stdout, /^hand: version 1,/);
    assert.deepEqual(await vault.dns.txt(apex), [value], 'who made it removes it');
  });

  test('the record of an order whose certificate was deleted after a crash is removed at the next start', async (t) => {
    const { vault, front } = await frontedVault(t);
    await vault.addDnsProvider();
    const server = await vault.serve();
    const held = front.hold('request', /^\/chalZ\//);
    const args = ['--name', 'web', '--domain', 'example.test', '--issuer', 'pebble'];
    await vault.done('certificate', 'create', ...args);
    await held.reached;
    await server.end('SIGKILL');
    assert.equal((await vault.dns.txt(apex)).length, 1);
    await vault.done('certificate', 'delete', '--name', 'web');
    await vault.serve();
    await eventually('the record is gone', async () =>
      (await vault.dns.txt(apex)).length === 0 ? true : undefined,
    );
    await eventually('and forgotten', () =>
      vault.query('select id from acme_challenges').length === 0 ? true : undefined,
    );
  });

  test('a domain without a matching DNS provider zone fails with the command that adds a provider', async (t) => {
    const vault = await acmeVault(t);
    await vault.serve();
    const args = ['--name', 'wild', '--domain', '*.example.test', '--issuer', 'pebble', '--wait'];
    const complaint = await vault.refused('certificate', 'create', ...args);
    assert.match(complaint, /no DNS provider has a zone for \*\.example\.test.*\n?.*vault dns-provider add/);
  });
});

test(
  'dns-persist-01 requires --acme-drafts, and its record is checked and never removed',
  needsAcme('dns-persist-01'),
  async (t) => {
    const vault = await acmeVault(t);
    const server = await vault.serve();
    const create = ['certificate', 'create', '--domain', 'example.test', '--issuer', 'pebble'];
    const persist = ['--challenge', 'dns-persist-01', '--wait'];
    const refused = await vault.refused(...create, '--name', 'draft', ...persist);
    assert.match(refused, /dns-persist-01 is still a draft.*--acme-drafts/s);
    await server.end();

    await vault.serve('--acme-drafts');
    const missing = await vault.refused(...create, '--name', 'web', ...persist);
    const record = /missing record: (\S+) TXT "([^"]+)"/.exec(missing);
    assert.equal(record?.[1], '_validation-persist.example.test', missing);
    assert.match(record[2] ?? '', /^[\w.]+; ?accounturi=https:\/\//);
    await putRecord(vault.dns, record[1], record[2] ?? '');
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /^web: version 1,/);
    assert.deepEqual(await vault.dns.txt(record[1]), [record[2]]);
  },
);
