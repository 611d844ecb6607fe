/**
 * Private CAs in the document of `vault apply`: created, confined, exported, and never left with names that they cannot
 * renew.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import { commandLine } from '../../../harness/processes/command-line.ts';

type Issuer = { name: string; private_ca: Record<string, unknown> | null };

const staging = {
  type: 'local-ca',
  common_name: 'Staging',
  permit_domains: ['staging.example'],
  permit_ips: ['10.0.0.0/8'],
  lifetime: '30d',
  key_type: 'ec384',
};
const web = { domains: ['web.staging.example'], issuer: 'staging-ca' };

function prepared(t: Parameters<typeof commandLine>[0]) {
  const line = commandLine(t);
  const document = (content: object) => line.file(stringify({ version: 1, ...content }), 'vault.yaml');
  return {
    ...line,
    apply: (content: object, ...args: string[]) => line.done('apply', '-f', document(content), ...args),
    refuse: (content: object, message: RegExp) =>
      line.refused(['apply', '-f', document(content), '--yes'], message),
    exported: async () => parse((await line.done('export')).stdout) as Record<string, unknown>,
  };
}

test('a private CA and its certificates are created, unchanged by a second apply, and exported as applied', async (t) => {
  const { apply, exported, json, done } = prepared(t);
  const content = { issuers: { 'staging-ca': staging }, certificates: { web } };
  const { stdout } = await apply(content);
  assert.match(stdout, /^\+ issuer staging-ca$/m);
  assert.match(stdout, /^ {4}permit_domains: \[staging\.example\]$/m);
  assert.match(stdout, /^ {4}key_type: ec384$/m);
  assert.match((await apply(content)).stdout, /^No changes\.$/m);
  const state = await exported();
  assert.deepEqual(state.issuers, { 'staging-ca': staging });
  assert.deepEqual(state.certificates, { web: { ...web, key_type: 'ec384' } });
  await done('certificate', 'renew', '--name', 'web', '--wait');
  const [certificate] = await json<{ key_type: string; status: string }[]>('certificate', 'list');
  assert.deepEqual([certificate?.key_type, certificate?.status], ['ec384', 'valid']);
});

test('constraints and defaults can be changed; omitted ones are reset', async (t) => {
  const { apply, exported, json } = prepared(t);
  await apply({ issuers: { 'staging-ca': staging } });
  const narrower = { type: 'local-ca', permit_domains: ['eu.staging.example'] };
  const { stdout } = await apply({ issuers: { 'staging-ca': narrower } });
  assert.match(stdout, /^~ issuer staging-ca$/m);
  assert.match(stdout, /^ {4}lifetime: 30d → none$/m);
  const ca = (await json<Issuer[]>('issuer', 'list')).find(({ name }) => name === 'staging-ca')?.private_ca;
  assert.deepEqual([ca?.common_name, ca?.permit_ips, ca?.lifetime], ['Staging', [], '90d']);
  assert.deepEqual((await exported()).issuers, { 'staging-ca': { ...narrower, common_name: 'Staging' } });
});

test('local-ca is exported only once it has constraints, and is never pruned', async (t) => {
  const { apply, exported } = prepared(t);
  await apply({ certificates: { web: { domains: ['web.internal'] } } });
  assert.equal((await exported()).issuers, undefined);
  const content = { issuers: { 'local-ca': { type: 'local-ca', permit_domains: ['internal'] } } };
  await apply(content, '--prune', '--yes');
  assert.deepEqual((await exported()).issuers, content.issuers);
  const { stdout } = await apply({}, '--prune', '--yes');
  assert.match(stdout, /^No changes\.$/m);
});

test('domains that a private CA does not permit are rejected, also for its fallback and existing certificates', async (t) => {
  const { apply, refuse, done } = prepared(t);
  const issuers = { 'staging-ca': staging };
  await refuse(
    { issuers, certificates: { web: { ...web, domains: ['www.example.com'] } } },
    /issuer staging-ca does not permit www\.example\.com; it permits staging\.example and names below it, 10\.0\.0\.0\/8/,
  );
  const certificates = {
    web: { domains: ['www.example.com'], fallback_issuer: 'staging-ca', issuer: 'local-ca' },
  };
  await refuse({ issuers, certificates }, /issuer staging-ca does not permit www\.example\.com/);
  await done('certificate', 'create', '--name', 'shop', '--domain', 'shop.example.com');
  const confined = { 'local-ca': { type: 'local-ca', permit_domains: ['internal'] } };
  await refuse(
    { issuers: confined },
    /certificates that local-ca renews have other names: shop \(shop\.example\.com\)/,
  );
  await apply({ issuers: confined, certificates: { shop: { domains: ['shop.internal'] } } });
});

test('the common name, path length and type of a private CA cannot be changed', async (t) => {
  const { apply, refuse } = prepared(t);
  await apply({ issuers: { 'staging-ca': staging } });
  await refuse(
    { issuers: { 'staging-ca': { ...staging, common_name: 'Other' } } },
    /common_name.*cannot be changed; it is Staging/,
  );
  await refuse(
    { issuers: { 'staging-ca': { ...staging, path_length: 2 } } },
    /path_length.*cannot be changed; it is 1/,
  );
  const acme = { directory_url: 'https://ca.example/directory' };
  await refuse(
    { issuers: { 'staging-ca': acme } },
    /issuer staging-ca is a private CA, which cannot be changed/,
  );
  await refuse({ issuers: { 'staging-ca': { type: 'ca' } } }, /a type of issuer is acme or local-ca/);
  await refuse({ issuers: { 'staging-ca': { ...staging, email: 'a@b.test' } } }, /email: unknown setting/);
});

test('--prune removes a private CA that is not in the document and reports that it destroys its keys', async (t) => {
  const { apply, json } = prepared(t);
  await apply({ issuers: { 'staging-ca': staging } });
  const { stdout } = await apply({}, '--prune', '--yes');
  assert.match(stdout, /^- issuer staging-ca: destroys its keys$/m);
  assert.deepEqual(
    (await json<Issuer[]>('issuer', 'list')).map(({ name }) => name),
    ['local-ca'],
  );
});
