/** Checks of real TLS servers by a vault: what is stored, recorded and written behind, and when the next one is due. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { parseCertName } from '../../../src/base/cert-name.ts';
import { day, hour, minute } from '../../../src/base/duration.ts';
import type { Identifier } from '../../../src/base/identifier.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { importCertificate } from '../../../src/domain/certificates/certificate-import.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { changeEndpoint, removeEndpoint } from '../../../src/domain/endpoints/endpoint-changes.ts';
import { updateEndpointInput } from '../../../src/domain/endpoints/endpoint-inputs.ts';
import { rolloutTime } from '../../../src/domain/endpoints/endpoint-state.ts';
import { countEndpoints } from '../../../src/domain/endpoints/endpoints.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import { identifier, makeChain, makeLeaf } from '../../harness/ca/private-chain.ts';
import { type Identity, identityOf, scriptedServer, tlsServer } from '../../harness/endpoints/tls-servers.ts';
import { checked, endpointAt, identityIn, stored } from '../../harness/endpoints/vault-endpoints.ts';
import { eventsOf, makeCertificate, renewCertificate } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A vault with the certificate `web` of its private CA, a server that presents it, and the endpoint. */
async function served(t: TestContext, others: object = {}, options: { chain?: boolean } = {}) {
  const opened = await testVault(t);
  const { vault, dataDir } = opened;
  await makeCertificate(vault, 'web', ['www.example.test']);
  const server = await tlsServer(t, await identityIn(vault, 'web', options));
  const id = await endpointAt(vault, server.port, { certificate: 'web', ...others });
  const events = () => eventsOf(dataDir, 'endpoint.observe');
  return { ...opened, server, id, events };
}

/** A certificate from elsewhere, imported as `web`, as a server presents it. */
async function imported(
  t: TestContext,
): Promise<Awaited<ReturnType<typeof testVault>> & { foreign: Identity; rootPem: string }> {
  const opened = await testVault(t);
  const { root, intermediate, leaf } = await makeChain();
  const foreign = identityOf(leaf, intermediate);
  const sources = [{ name: 'bundle.pem', bytes: Buffer.from(foreign.cert + foreign.key) }];
  const name = parseCertName('web') ?? assert.fail();
  await importCertificate(opened.vault, localCli, { name, sources });
  return { ...opened, foreign, rootPem: encodePem('CERTIFICATE', root.certificate) };
}

suite('a check', () => {
  test('of an endpoint with the current version finds everything in order', async (t) => {
    const { vault, id, server } = await served(t);
    assert.equal((await stored(vault, id)).state, 'unchecked');
    const {
      fingerprint_sha256: fingerprint,
      issuer,
      next_check_at: next,
      ...shown
    } = await checked(vault, id);
    assert.match(fingerprint ?? '', /^[0-9a-f]{64}$/);
    assert.match(issuer ?? '', /^CN=/);
    const wait = Date.parse(next) - vault.world.now();
    assert(wait >= 0.9 * hour && wait <= 1.1 * hour, next);
    const { not_before, not_after } = shown;
    assert.deepEqual(shown, {
      ...{ id, address: `127.0.0.1:${server.port}`, certificate: 'web', server_name: 'www.example.test' },
      ...{ starttls: null, trust: 'auto', ca_subjects: [], interval: '1h' },
      ...{ state: 'current', reason: null, version: 1, current_version: 1, outdated_since: null },
      ...{ names: ['www.example.test'], not_before, not_after, tls_version: 'TLSv1.3' },
      ...{ chain_complete: true, verifies: true, ocsp_stapled: false, error: null },
      ...{
        created_at: '2026-11-21T12:00:00Z',
        checked_at: '2026-11-21T12:00:00Z',
        changed_at: '2026-11-21T12:00:00Z',
      },
    });
    assert.deepEqual(await stored(vault, id), {
      ...shown,
      fingerprint_sha256: fingerprint,
      issuer,
      next_check_at: next,
    });
  });

  test('adds one event of the vault with what was before when it finds something new', async (t) => {
    const { vault, id, server, events } = await served(t);
    const { fingerprint_sha256 } = await checked(vault, id);
    const [{ actor, resource, detail } = assert.fail(), ...others] = events();
    assert.deepEqual(others, []);
    assert.deepEqual([actor, resource], ['system', `endpoint:127.0.0.1:${server.port}`]);
    assert.deepEqual(detail, {
      ...{
        id,
        certificate: 'web',
        state: 'current',
        fingerprint_sha256,
        version: 1,
        problem: null,
        error: null,
      },
      previous: { state: 'unchecked', fingerprint_sha256: null, version: null, problem: null, error: null },
    });
  });

  test('without news starts no transaction, adds no event, and is written behind', async (t) => {
    const { vault, world, id, events } = await served(t);
    await checked(vault, id);
    world.advance(hour);
    const write = t.mock.method(vault.db, 'write');
    const { checked_at } = await checked(vault, id);
    assert.equal(checked_at, '2026-11-21T13:00:00Z');
    assert.equal(write.mock.callCount(), 0);
    assert.equal((await stored(vault, id)).checked_at, '2026-11-21T12:00:00Z');
    await vault.keyUse.write();
    const after = await stored(vault, id);
    assert.deepEqual([after.checked_at, after.changed_at], ['2026-11-21T13:00:00Z', '2026-11-21T12:00:00Z']);
    assert.equal(events().length, 1);
  });

  test('finds an older version outdated when clients have had their time, and current after its replacement', async (t) => {
    const { vault, world, server, id, events } = await served(t);
    await checked(vault, id);
    await renewCertificate(vault, 'web');
    assert.equal((await stored(vault, id)).next_check_at, '2026-11-21T12:01:00Z');
    world.advance(minute);
    const early = await checked(vault, id);
    assert.deepEqual([early.state, early.version, early.current_version], ['current', 1, 2]);
    assert(Date.parse(early.next_check_at) - world.now() <= 1.1 * minute, early.next_check_at);
    world.advance(rolloutTime);
    const late = await checked(vault, id);
    assert.deepEqual(
      [late.state, late.reason, late.outdated_since],
      ['outdated', 'version 1 instead of 2', '2026-11-21T12:00:00Z'],
    );
    server.present(await identityIn(vault, 'web'));
    const replaced = await checked(vault, id);
    assert.deepEqual([replaced.state, replaced.version], ['current', 2]);
    const { previous, version } = events().at(-1)?.detail ?? {};
    assert.deepEqual([version, previous], [2, { ...(previous as object), state: 'outdated', version: 1 }]);
  });

  test('finds another certificate unknown, even one for the same names by the same CA', async (t) => {
    const { vault, server, id } = await served(t);
    await makeCertificate(vault, 'other', ['www.example.test']);
    server.present(await identityIn(vault, 'other'));
    const { state, reason, version, verifies } = await checked(vault, id);
    assert.deepEqual(
      [state, reason, version, verifies],
      ['unknown', 'not a version of certificate web', null, true],
    );
  });

  test('finds a server untrusted that sends no intermediate, although its version is current', async (t) => {
    const { vault, id } = await served(t, {}, { chain: false });
    const { state, version, chain_complete, verifies, reason } = await checked(vault, id);
    assert.deepEqual([state, version, chain_complete, verifies], ['untrusted', 1, false, false]);
    assert.match(
      reason ?? '',
      /^incomplete chain or unknown CA: the server does not send the certificate of CN=/,
    );
  });

  test('finds a server untrusted whose certificate does not cover the server name', async (t) => {
    const { vault, id } = await served(t, { server_name: 'mail.example.test' });
    const { state, reason } = await checked(vault, id);
    assert.deepEqual([state, reason], ['untrusted', 'the certificate does not cover mail.example.test']);
  });

  test('finds a version that has expired', async (t) => {
    const { vault, world, id } = await served(t);
    world.advance(400 * day);
    const { state, reason, verifies } = await checked(vault, id);
    assert.equal(state, 'expiring');
    assert.match(reason ?? '', /^expires at \d/);
    assert.equal(verifies, false);
  });

  test('needs two failures in a row for an outage, which is one event, as is its end', async (t) => {
    const { vault, world, server, id, events } = await served(t);
    await checked(vault, id);
    server.stop();
    const first = await checked(vault, id);
    assert.deepEqual([first.state, first.reason], ['current', null]);
    assert.match(first.error ?? '', /refused/);
    const wait = Date.parse(first.next_check_at) - world.now();
    assert(wait <= 1.1 * minute, `the second check follows in ${wait} ms`);
    await vault.keyUse.write();
    const second = await checked(vault, id);
    assert.deepEqual([second.state, second.version], ['unreachable', 1]);
    assert.match(second.reason ?? '', /refused/);
    const third = await checked(vault, id);
    assert(Date.parse(third.next_check_at) - world.now() <= 11 * minute);
    assert.equal(events().length, 2);
    assert.equal(events().at(-1)?.detail.state, 'unreachable');
    const again = await tlsServer(t, await identityIn(vault, 'web'));
    await vault.db.write((writer) => writer.updateTable('endpoints').set({ port: again.port }).execute());
    const up = await checked(vault, id);
    assert.deepEqual([up.state, up.error], ['current', null]);
    assert.equal(events().length, 3);
  });

  test('of an endpoint that never had a certificate calls it unreachable the first time', async (t) => {
    const { vault, server, id, events } = await served(t);
    server.stop();
    const { state, fingerprint_sha256, verifies } = await checked(vault, id);
    assert.deepEqual([state, fingerprint_sha256, verifies], ['unreachable', null, null]);
    assert.equal(events().length, 1);
  });

  test('rejects when it is stopped, and neither counts as a failure nor is recorded', async (t) => {
    const { vault, id, events } = await served(t);
    const silent = await scriptedServer(t, await identityIn(vault, 'web'), async ({ socket }) => {
      socket.once('data', () => stop.abort());
      return 'stay';
    });
    const stop = new AbortController();
    await vault.db.write((writer) => writer.updateTable('endpoints').set({ port: silent.port }).execute());
    await assert.rejects(checked(vault, id, stop), { name: 'AbortError' });
    await vault.keyUse.write();
    const { checked_at, error } = await stored(vault, id);
    assert.deepEqual([checked_at, error, events().length], [null, null, 0]);
  });

  test('of an endpoint that does not exist is rejected', async (t) => {
    const { vault } = await testVault(t);
    for (const id of [1, 0, Number.NaN, 2 ** 60]) {
      await assert.rejects(checked(vault, id), { code: 'endpoint_not_found' });
    }
  });

  for (const what of ['changed', 'removed'] as const) {
    test(`leaves no trace if its endpoint is ${what} meanwhile`, async (t) => {
      const { vault, events } = await served(t);
      const change = { interval: '2h', trust: 'public' };
      const fits = () => undefined;
      const slow = await scriptedServer(t, await identityIn(vault, 'web'), async () => {
        if (what === 'removed') await removeEndpoint(vault, localCli, id, fits);
        else await changeEndpoint(vault, localCli, id, parseInput(updateEndpointInput, change), fits);
        return undefined;
      });
      const id = await endpointAt(vault, slow.port, { certificate: 'web' });
      await checked(vault, id);
      await vault.keyUse.write();
      assert.deepEqual(events(), []);
      const { rows } = {
        rows: await vault.db.reader.selectFrom('endpoints').selectAll().where('id', '=', id).execute(),
      };
      assert.deepEqual(
        rows.map(({ fingerprint_sha256, checked_at }) => [fingerprint_sha256, checked_at]),
        what === 'removed' ? [] : [[null, null]],
      );
    });
  }

  for (const [what, wait, next] of [
    ['in the middle of its interval', 10 * minute, '2026-11-21T12:11:00Z'],
    ['when it was due', 2 * hour, '2026-11-21T14:01:00Z'],
  ] as const) {
    test(`${what} that is written behind keeps the earlier time for which a renewal asked`, async (t) => {
      const { vault, world, id } = await served(t);
      await checked(vault, id);
      world.advance(wait);
      const { checked_at } = await checked(vault, id);
      await renewCertificate(vault, 'web');
      await vault.keyUse.write();
      const after = await stored(vault, id);
      assert.deepEqual([after.checked_at, after.next_check_at], [checked_at, next]);
    });
  }

  test('stores no more than the first hundred names of a certificate, and none that is too long for DNS', async (t) => {
    const { vault, server, id } = await served(t);
    const { intermediate } = await makeChain();
    const many = Array.from({ length: 300 }, (_, at) => identifier(`n${at}.example.test`));
    const identifiers = ['x'.repeat(300) as Identifier, ...many];
    server.present(identityOf(await makeLeaf(intermediate, { identifiers }), intermediate));
    const { names } = await checked(vault, id);
    assert.deepEqual([names.length, names[99]], [100, 'n99.example.test']);
  });
});

suite('the trust of an endpoint', () => {
  const verdicts: readonly (readonly [trust: object, state: string])[] = [
    [{}, 'current'],
    [{ trust: 'private-ca' }, 'current'],
    [{ trust: 'public' }, 'untrusted'],
  ];
  for (const [trust, state] of verdicts) {
    test(`makes a certificate of the private CA ${state} with ${JSON.stringify(trust)}`, async (t) => {
      const { vault, id } = await served(t, trust);
      assert.equal((await checked(vault, id)).state, state);
    });
  }

  test('includes the chain of an imported certificate, but not if it is public only', async (t) => {
    const { vault, foreign } = await imported(t);
    const { port } = await tlsServer(t, foreign);
    const names = { certificate: 'web', server_name: 'www.example.com' };
    const id = await endpointAt(vault, port, names);
    assert.equal((await checked(vault, id)).state, 'current');
    const strict = await endpointAt(vault, port, { ...names, server_name: 'a.example.org', trust: 'public' });
    const { state, chain_complete } = await checked(vault, strict);
    assert.deepEqual([state, chain_complete], ['untrusted', false]);
  });

  test('is only the bundle that is given, also for a certificate of the private CA', async (t) => {
    const { vault, foreign, rootPem } = await imported(t);
    const { port } = await tlsServer(t, foreign);
    const given = await endpointAt(vault, port, { server_name: 'www.example.com', ca_pem: rootPem });
    const { state, trust, ca_subjects } = await checked(vault, given);
    assert.deepEqual([state, trust, ca_subjects], ['current', 'bundle', ['CN=Test Root']]);
    await makeCertificate(vault, 'own', ['own.example.test']);
    const own = await tlsServer(t, await identityIn(vault, 'own'));
    const id = await endpointAt(vault, own.port, { certificate: 'own', ca_pem: rootPem });
    assert.equal((await checked(vault, id)).state, 'untrusted');
  });
});

test('an endpoint without a certificate is only watched, and an early expiry is announced', async (t) => {
  const { vault, world } = await testVault(t);
  const { root, intermediate } = await makeChain();
  const terms = { notBefore: world.now() - day, notAfter: world.now() + 7 * day };
  const leaf = await makeLeaf(intermediate, terms);
  const { port } = await tlsServer(t, identityOf(leaf, intermediate));
  const ca_pem = encodePem('CERTIFICATE', root.certificate);
  const id = await endpointAt(vault, port, { server_name: 'www.example.com', ca_pem });
  const first = await checked(vault, id);
  assert.deepEqual([first.state, first.certificate, first.version], ['current', null, null]);
  world.advance(5 * day);
  assert.equal((await stored(vault, id)).state, 'expiring');
});

test('an endpoint outlives its certificate and is watched from then on', async (t) => {
  const { vault, id } = await served(t);
  await checked(vault, id);
  await deleteCertificate(vault, localCli, 'web', { force: true });
  const { certificate, current_version } = await stored(vault, id);
  assert.deepEqual([certificate, current_version], [null, null]);
  const after = await checked(vault, id);
  assert.deepEqual([after.version, after.state], [null, 'current']);
});

test('endpoints are counted in their states', async (t) => {
  const { vault, id, server } = await served(t);
  await checked(vault, id);
  await endpointAt(vault, server.port, { server_name: 'unchecked.example.test' });
  const wrong = await endpointAt(vault, server.port, { server_name: 'wrong.example.test' });
  await checked(vault, wrong);
  const none = { unreachable: 0, unknown: 0, outdated: 0, expiring: 0 };
  assert.deepEqual(await countEndpoints(vault), { ...none, unchecked: 1, untrusted: 1, current: 1 });
});

test('the checks of endpoints that were added together spread by a tenth of their interval', async (t) => {
  const { vault, world, server } = await served(t);
  const waits = new Set<number>();
  for (let at = 0; at < 12; at += 1) {
    const id = await endpointAt(vault, server.port, { server_name: `n${at}.example.test`, interval: '10h' });
    waits.add(Date.parse((await checked(vault, id)).next_check_at) - world.now());
  }
  assert(waits.size > 6, `${waits.size} different times`);
  assert([...waits].every((wait) => wait >= 9 * hour && wait <= 11 * hour));
});
