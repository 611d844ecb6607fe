/** After any faulty response of the server, the destination has a matching pair, and the next run recovers. */

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { assertPair, leftovers, type Machine, machine, type Tool } from '../harness/client/installer.ts';
import type { Answer, Relay } from '../harness/client/relay.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurn } from '../harness/slice.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { everyTool } from './places.ts';

type Scene = { vault: ClientVault; client: Machine; server: Relay; run: () => ReturnType<Machine['run']> };

/** A job with version 1 on disk, and version 2 in the vault. */
async function scene(t: TestContext, tool: Tool = 'curl'): Promise<Scene> {
  const vault = await clientVault(t, { tool });
  const server = await vault.relay();
  const client = machine(t, { tool });
  const installed = await vault.install(client, ['--server', server.url]);
  assert.equal(installed.code, 0, installed.stderr);
  await vault.renew();
  const environment = { CERTIFICATE_VAULT_FETCH_SECONDS: '1', CERTIFICATE_VAULT_FETCH_TRIES: '2' };
  const run = () => client.run(['--run', client.jobs()[0] ?? ''], { script: client.copy(), environment });
  return { vault, client, server, run };
}

const html = {
  status: 200,
  headers: { 'Content-Type': 'text/html', ETag: '"x"', 'Certificate-Version': '2' },
  body: '<html><body>Please sign in</body></html>\n',
};

const faults: readonly [string, Answer, number, RegExp][] = [
  ['500', { status: 500 }, 10, /unexpected status 500/],
  ['401', { status: 401 }, 10, /the API key is unknown, revoked or expired/],
  ['403', { status: 403 }, 10, /the API key has no permission for this file/],
  ['404', { status: 404 }, 10, /certificate "web" or this version not found/],
  ['409', { status: 409 }, 10, /certificate "web" has not been issued yet/],
  ['a truncated body', 'truncated', 10, /curl: \(18\)|the connection closed after \d+ of \d+ bytes/],
  ['a body of HTML with status 200', html, 11, /an incomplete or invalid PEM file/],
  ['HTML of a server that is not a vault', { ...html, headers: {} }, 10, /no Certificate-Version/],
  // The time limits of the tool and of the script end at the same second.
  ['a missing response', 'hanging', 10, /no complete response within 1 seconds|timed out/],
];

for (const [at, [tool, isThere]] of everyTool().entries()) {
  // All with curl, and two in each commit with each other tool.
  for (const [name, answer, code, message] of inTurn(faults, tool === 'curl' ? faults.length : 2, at)) {
    test(`${name} leaves the old pair, and the next run recovers, with ${tool}`, isThere, async (t) => {
      const { client, server, run } = await scene(t, tool);
      const before = [client.file('tls.crt'), client.file('tls.key')];
      // The fault affects the second file, after the first was downloaded.
      server.answer = (path) => (path.includes('private.key') ? answer : undefined);
      const failed = await run();
      assert.equal(failed.code, code, failed.stderr);
      assert.match(failed.stderr, message);
      assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], before);
      assert.deepEqual(leftovers(client), []);
      assert.equal((await client.run(['--status'])).code, 1);
      server.answer = () => undefined;
      const healed = await run();
      assert.equal(healed.code, 0, healed.stderr);
      assert.notEqual(client.file('tls.crt'), before[0]);
      assertPair(client);
    });
  }

  test(`a redirect is not followed with the API key, with ${tool}`, isThere, async (t) => {
    const { vault, server, run } = await scene(t, tool);
    const elsewhere = await vault.relay();
    server.answer = (path) => ({ status: 302, headers: { Location: `${elsewhere.url}${path}` } });
    const failed = await run();
    assert.equal(failed.code, 10, failed.stderr);
    assert.match(failed.stderr, /refused to follow a redirect to http/);
    assert.deepEqual(elsewhere.seen, []);
  });
}

test('temporary errors are retried within the run, and permanent ones are not', needs('curl'), async (t) => {
  const { server, run } = await scene(t);
  let failures = 1;
  server.answer = () => (failures-- > 0 ? { status: 503 } : undefined);
  assert.equal((await run()).code, 0);
  server.seen.length = 0;
  server.answer = () => ({ status: 403 });
  assert.equal((await run()).code, 10);
  assert.deepEqual(
    server.seen.map(({ method }) => method),
    ['GET', 'PUT'],
    'one request and the report',
  );
});

test('a renewal between two downloads still gives the files of one version', needs('curl'), async (t) => {
  const { vault, client, server, run } = await scene(t);
  let renewals = 1;
  server.answer = async (path) => {
    if (path.includes('private.key') && renewals-- > 0) await vault.renew();
    return undefined;
  };
  const first = await run();
  assert.equal(first.code, 0, first.stderr);
  assertPair(client);
  assert.match(first.stderr, /version 2 is installed/);
  assert.deepEqual(
    server.seen
      .filter(({ method }) => method === 'GET')
      .slice(-2)
      .map(({ path }) => path),
    ['/api/v1/certificates/web/fullchain.crt', '/api/v1/certificates/web/private.key?version=2'],
  );
  assert.match((await run()).stderr, /version 3 is installed/);
  assertPair(client);
});

test('a private key of another certificate is rejected', needs('openssl'), async (t) => {
  const { vault, client, server, run } = await scene(t);
  const stranger = makeChain(tempDir(t)).leaf;
  server.answer = (path) =>
    path.includes('private.key')
      ? { status: 200, headers: { ETag: '"k"', 'Certificate-Version': '2' }, body: stranger.keyPem }
      : undefined;
  const failed = await run();
  assert.equal(failed.code, 11, failed.stderr);
  assert.match(failed.stderr, /private\.key does not match the certificate/);
  assertPair(client);
  assert.equal(vault.downloads().at(-1), 'fullchain.crt 2');
});

test(
  'a certificate that has expired, is not valid yet or is older than the one on disk is rejected',
  needs('openssl'),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const dir = tempDir(t);
    const make = (label: string, notBefore: number, notAfter: number) =>
      makeChain(dir, { label, notBefore, notAfter });
    const newer = make('Newer', Date.UTC(2025, 5, 1), Date.UTC(2045, 0, 1));
    const older = make('Older', Date.UTC(2024, 5, 1), Date.UTC(2045, 0, 1));
    const expired = make('Expired', Date.UTC(2024, 5, 1), Date.UTC(2025, 0, 1));
    await vault.import('bought', newer.fullchainPem, newer.leaf.keyPem);
    assert.equal((await vault.install(client, ['--certificate', 'bought'])).code, 0);
    await vault.import('bought', older.fullchainPem, older.leaf.keyPem);
    const run = () => client.run(['--run']);
    const refused = await run();
    assert.equal(refused.code, 11, refused.stderr);
    assert.match(refused.stderr, /older than the one in/);
    assert.equal(client.file('tls.crt'), newer.fullchainPem);
    const answers: Record<string, string> = {
      'fullchain.crt': expired.fullchainPem,
      'private.key': expired.leaf.keyPem,
    };
    const server = await vault.relay();
    server.answer = (path) => {
      const body = answers[/[^/]+\.(?:crt|key)/.exec(path)?.[0] ?? ''];
      return { status: 200, headers: { ETag: '"e"', 'Certificate-Version': '3' }, body: body ?? '' };
    };
    const other = machine(t);
    const failed = await vault.install(other, ['--server', server.url]);
    assert.equal(failed.code, 11, failed.stderr);
    assert.match(failed.stderr, /has expired/);
    assert.deepEqual(other.jobs(), []);
    const next = make('Next', Date.UTC(2044, 5, 1), Date.UTC(2045, 0, 1));
    answers['fullchain.crt'] = next.fullchainPem;
    answers['private.key'] = next.leaf.keyPem;
    const early = await vault.install(other, ['--server', server.url]);
    assert.equal(early.code, 11, early.stderr);
    assert.match(
      early.stderr,
      /is not valid before Jun +1 .* 2044 GMT, and this machine's clock says .*; nothing was changed\nFix: set the clock, or use --allow-not-yet-valid once if it stays wrong\n/,
    );
    assert.deepEqual(other.jobs(), []);
    const allowed = await vault.install(other, ['--server', server.url, '--allow-not-yet-valid']);
    assert.equal(allowed.code, 0, allowed.stderr);
    assert.equal(other.file('tls.crt'), next.fullchainPem);
    assert.equal((await other.run(['--run'], { script: other.copy() })).code, 0);
    const later = make('Later', Date.UTC(2044, 6, 1), Date.UTC(2045, 0, 1));
    answers['fullchain.crt'] = later.fullchainPem;
    answers['private.key'] = later.leaf.keyPem;
    assert.equal((await other.run(['--run'])).code, 11);
    const again = await other.run(['--run', '--allow-not-yet-valid']);
    assert.equal(again.code, 0, again.stderr);
    assert.equal(other.file('tls.crt'), later.fullchainPem);
  },
);
