/** DNS providers as people add, try and remove them, with the programs that a provider of the type exec calls. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  addDnsProvider,
  removeDnsProvider,
  tryDnsProvider,
} from '../../../src/domain/dns-providers/dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { hastyWorld, memoryZone, withZone } from '../../harness/issuance/engine-vault.ts';
import { forever } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const secretOf = (text: string) => new Secret(Buffer.from(text));

async function prepared(t: TestContext) {
  const opened = await testVault(t, { world: hastyWorld() });
  const zone = memoryZone();
  const vault = withZone(opened.vault, zone);
  const said = join(opened.dataDir, 'said');
  const program = join(opened.dataDir, 'hook');
  writeFileSync(program, `#!/bin/sh\nprintf '%s ' "$@" >> ${said}\n`);
  chmodSync(program, 0o700);
  const add = (name: string, zones: readonly string[], secret = `command: ${program}`, type = 'exec') =>
    addDnsProvider(
      vault,
      localCli,
      parseInput(createDnsProviderInput, { name, type, zones }),
      secretOf(secret),
    );
  return { ...opened, vault, zone, add, said: () => (existsSync(said) ? readFileSync(said, 'utf8') : '') };
}

const namesIn = async ({ db }: Vault) =>
  (await db.reader.selectFrom('dns_providers').select('name').orderBy('id').execute()).map(
    ({ name }) => name,
  );

test('tryDnsProvider creates, finds and removes a record through a CNAME, and reports each step', async (t) => {
  const { vault, zone, add, said } = await prepared(t);
  await add('hook', ['example.test', 'acme.test']);
  zone.aliases.set('_acme-challenge.www.example.test', 'www.acme.test');
  const steps: string[] = [];
  const onStep = (text: string) => {
    steps.push(text);
    const value = /^Creating (\S+) TXT "(.+)"$/.exec(text);
    if (value !== null) zone.records.set(value[1] ?? '', new Set([value[2] ?? '']));
  };
  await tryDnsProvider(vault, { name: 'hook', domain: '*.www.example.test' }, onStep, forever);
  const [, value] = /^Creating www\.acme\.test TXT "([\w-]{43})"$/.exec(steps[0] ?? '') ?? [];
  assert.deepEqual(steps.slice(1), [
    'Waiting until the record is visible',
    'Record is visible',
    'Record removed',
  ]);
  assert.equal(said(), `present www.acme.test. ${value} cleanup www.acme.test. ${value} `);
});

test('a record that does not become visible is removed, and the error reports the resolver', async (t) => {
  const { vault, add, said } = await prepared(t);
  await add('hook', ['example.test']);
  const trying = tryDnsProvider(
    vault,
    { name: 'hook', domain: 'www.example.test' },
    () => undefined,
    forever,
  );
  await assert.rejects(trying, {
    name: 'DnsProviderError',
    message: /is not visible after 600 s: the resolver/,
  });
  assert.match(said(), /^present .* cleanup /);
});

test('when both present and cleanup fail, the error is about present', async (t) => {
  const { vault, add, dataDir } = await prepared(t);
  const program = join(dataDir, 'broken');
  writeFileSync(program, '#!/bin/sh\necho "cannot $1" >&2\nexit 1\n');
  chmodSync(program, 0o700);
  await add('broken', ['example.test'], `command: ${program}`);
  const trying = tryDnsProvider(
    vault,
    { name: 'broken', domain: 'www.example.test' },
    () => undefined,
    forever,
  );
  await assert.rejects(trying, /cannot present/);
});

test('a domain outside the zones is rejected before the hook runs', async (t) => {
  const { vault, zone, add, said } = await prepared(t);
  await add('hook', ['example.test']);
  zone.aliases.set('_acme-challenge.www.example.test', 'elsewhere.test');
  for (const [domain, message] of [
    ['www.other.test', /^_acme-challenge\.www\.other\.test is in none of the zones of hook: example\.test$/],
    ['www.example.test', /\(a CNAME of elsewhere\.test\) is in none of the zones/],
  ] as const) {
    const trying = tryDnsProvider(vault, { name: 'hook', domain }, () => undefined, forever);
    await assert.rejects(trying, { name: 'OperatorError', message });
  }
  assert.equal(said(), '');
});

test('invalid settings, an unknown type and a duplicate name are rejected, and no provider is added', async (t) => {
  const { vault, add } = await prepared(t);
  await assert.rejects(add('hook', ['example.test'], 'command: relative'), /absolute path/);
  await assert.rejects(add('hook', ['example.test'], 'nothing: here'), /nothing|command/);
  await assert.rejects(add('hook', ['example.test'], 'x', 'cloudfare'), { hint: /cloudflare/ });
  assert.deepEqual(await namesIn(vault), []);
  await add('hook', ['example.test']);
  await assert.rejects(add('hook', ['other.test']), /a DNS provider named hook already exists/);
  assert.deepEqual(await namesIn(vault), ['hook']);
});

test('a provider is removed with its secret, and a new provider may reuse its name', async (t) => {
  const { vault, add, said } = await prepared(t);
  await add('hook', ['example.test'], 'command: /bin/false');
  const attempt = () =>
    tryDnsProvider(vault, { name: 'hook', domain: 'www.example.test' }, () => undefined, forever);
  await assert.rejects(attempt(), { name: 'DnsProviderError' });
  await removeDnsProvider(vault, localCli, 'hook');
  await assert.rejects(attempt(), /unknown DNS provider "hook"/);
  await assert.rejects(removeDnsProvider(vault, localCli, 'hook'), /unknown DNS provider "hook"/);
  await add('hook', ['example.test']);
  await assert.rejects(attempt(), /is not visible/);
  assert.match(said(), /^present /);
  const actions = await vault.db.reader.selectFrom('audit_events').select('action').orderBy('id').execute();
  assert.deepEqual(
    actions.map(({ action }) => action).filter((action) => action.startsWith('dns_provider')),
    ['dns_provider.create', 'dns_provider.delete', 'dns_provider.create'],
  );
});

test('the secret is not stored in plain text in the provider row or the audit log', async (t) => {
  const { vault, add } = await prepared(t);
  await add('hook', ['example.test'], 'command: [/bin/true, very-secret-token]');
  const row = await vault.db.reader.selectFrom('dns_providers').selectAll().executeTakeFirstOrThrow();
  assert(row.sealed_secret.length > 20 && !row.sealed_secret.includes('very-secret'));
  const events = await vault.db.reader.selectFrom('audit_events').select('detail').execute();
  assert(events.every(({ detail }) => !detail.includes('very-secret')));
});
