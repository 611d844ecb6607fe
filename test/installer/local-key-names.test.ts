/** Jobs with --local-key for certificates with URIs and email addresses: the request has the same names. */
import assert from 'node:assert/strict';
import type { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { assertPair, machine } from '../harness/client/installer.ts';
import type { Answer } from '../harness/client/relay.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { installLocal } from './local-keys.ts';
import { inTurnOfShells } from './places.ts';

// Each character that a URI or an address may have, also those with a meaning in the configuration of openssl.
const uri = "https://host.example/a$b'c#d(e)*,;=[f]!&g%20h?i~j_k";
const email = "o'brien+$x#y`{|}~^=/?!%&*@example.test";

/** The names without quotes that Node puts around unusual ones. */
const namesOf = (certificate: X509Certificate) =>
  (certificate.subjectAltName ?? '').replaceAll(
    /"(?:[^"\\]|\\.)*"/g,
    (quoted) => JSON.parse(quoted) as string,
  );

inTurnOfShells(
  'a request has the URIs and email addresses of the certificate, and a change causes a new request',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    await vault.command('certificate', 'update', '--name', 'web', '--uri', uri, '--email', email, '--wait');
    const installed = await installLocal(vault, client);
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(namesOf(assertPair(client)), `DNS:www.example.test, URI:${uri}, email:${email}`);
  },
);

test(
  'a certificate with only a SPIFFE ID can use a key generated on the machine',
  needs('openssl'),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const spiffe = 'spiffe://example.test/ns/prod/db';
    await vault.command('certificate', 'create', '--name', 'db', '--uri', spiffe);
    const installed = await installLocal(vault, client, ['--certificate', 'db']);
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(namesOf(assertPair(client)), `URI:${spiffe}`);
  },
);

for (const name of [
  'https://host.example/a b',
  'https://host.example/\\x',
  'https://host.example/\n[names]',
]) {
  test(
    `a URI with invalid characters is not requested: ${JSON.stringify(name)}`,
    needs('openssl'),
    async (t) => {
      const vault = await clientVault(t);
      const client = machine(t);
      const server = await vault.relay();
      const shown = JSON.stringify({ name: 'web', domains: ['www.example.test'], uris: [name], emails: [] });
      server.answer = (path): Answer =>
        path === '/api/v1/certificates/web' ? { status: 200, body: shown } : undefined;
      const installed = await installLocal(vault, client, [], { url: server.url });
      assert.equal(installed.code, 10, installed.stderr);
      assert.match(installed.stderr, /the vault has a name that this script cannot request: /);
      assert.equal(server.seen.filter(({ method }) => method === 'POST').length, 0);
    },
  );
}

test('a certificate with more than 1000 names is not requested', needs('openssl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const server = await vault.relay();
  const domains = Array.from({ length: 1001 }, (_, at) => `a${at}.example.test`);
  server.answer = (path): Answer =>
    path === '/api/v1/certificates/web'
      ? { status: 200, body: JSON.stringify({ name: 'web', domains, uris: [], emails: [] }) }
      : undefined;
  const installed = await installLocal(vault, client, [], { url: server.url });
  assert.equal(installed.code, 10, installed.stderr);
  assert.match(installed.stderr, /the vault has more than 1000 names for certificate "web"/);
});
