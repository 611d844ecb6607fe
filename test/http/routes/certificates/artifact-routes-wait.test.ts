/** Downloads that wait for a new version over real HTTP: what ends a wait, how it is answered, and what is recorded. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { minute } from '../../../../src/base/duration.ts';
import { StorageError } from '../../../../src/base/storage-error.ts';
import { changeApiKey } from '../../../../src/domain/access/api-key-change.ts';
import { updateApiKeyInput } from '../../../../src/domain/access/api-key-inputs.ts';
import { rotateApiKey } from '../../../../src/domain/access/api-key-rotation.ts';
import { revokeApiKey } from '../../../../src/domain/access/api-keys.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../../src/domain/certificates/certificates.ts';
import { parseInput } from '../../../../src/domain/inputs.ts';
import { codeOf } from '../../../harness/http/checked.ts';
import {
  eventsOf,
  importOne,
  makeCertificate,
  makeKey,
  renewCertificate,
} from '../../../harness/http/fixtures.ts';
import { type WaitedServer, waitedFile, waitedServer, waitingAre } from '../../../harness/http/waits.ts';
import { testVault } from '../../../harness/test-vault.ts';

const www = '/api/v1/certificates/www';

/** The response to a request that waits while this happens; the vault notices it at its next look. */
async function endedBy(
  { server, wait }: WaitedServer,
  change: () => unknown,
  ...request: Parameters<WaitedServer['wait']>
): Promise<Response> {
  const waiting = wait(...request);
  await waitingAre(server, 1);
  await change();
  server.world.advance(1000);
  const response = await waiting;
  assert.equal(server.context.waits.size, 0);
  return response;
}

suite('a download that waits', () => {
  test('gets 304 with its headers when its time is over, and not earlier', async (t) => {
    const { server, wait, look, tagOf } = await waitedServer(t);
    const waiting = wait();
    await waitingAre(server, 1);
    await look();
    server.world.advance(57_000);
    await server.world.sleeping(1);
    await look();
    server.world.advance(1000);
    const { status, headers } = await waiting;
    assert.deepEqual([status, headers.get('ETag')], [304, await tagOf(waitedFile)]);
    assert.equal(headers.get('Certificate-Version'), '1');
    assert.equal(headers.get('Cache-Control'), 'no-store');
    assert.equal(headers.get('Retry-After'), null);
  });

  for (const [file, headers] of [
    ['private.key', {}],
    ['fullchain.pem', {}],
    ['combined.pem', {}],
    ['keystore.p12', { 'Keystore-Password': 'changeit' }],
    ['archive.tar', { 'Keystore-Password': 'changeit' }],
  ] as const) {
    test(`of ${file} gets the new version when there is one`, async (t) => {
      const waited = await waitedServer(t);
      const { server, tagOf } = waited;
      const path = `${www}/${file}`;
      const before = await tagOf(path, headers);
      const response = await endedBy(
        waited,
        () => renewCertificate(server.vault, 'www'),
        `${path}?wait=300`,
        {
          headers,
        },
      );
      assert.deepEqual([response.status, response.headers.get('Certificate-Version')], [200, '2']);
      assert.notEqual(response.headers.get('ETag'), before);
      const now = await server.get(path, waited.key.raw, { headers });
      assert.equal(now.headers.get('ETag'), response.headers.get('ETag'));
    });
  }

  test('gets the new version that another process has written', async (t) => {
    const waited = await waitedServer(t);
    const { dataDir, world } = waited.server;
    const other = await testVault(t, { dataDir, world });
    const response = await endedBy(waited, () => renewCertificate(other.vault, 'www'));
    assert.deepEqual([response.status, response.headers.get('Certificate-Version')], [200, '2']);
  });

  test('keeps waiting when another certificate or anything else changes', async (t) => {
    const { server, wait, look } = await waitedServer(t);
    await makeCertificate(server.vault, 'other');
    const waiting = wait();
    await waitingAre(server, 1);
    for (const change of [
      () => renewCertificate(server.vault, 'other'),
      () => makeKey(server.vault, { name: 'new' }),
      () => importOne(server.vault, 'imported', { chain: true }),
    ]) {
      await change();
      await look();
    }
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal((await waiting).status, 200);
  });

  test('of a chain that the new version did not change waits for the rest of its time', async (t) => {
    const { server, wait, look } = await waitedServer(t);
    const waiting = wait(`${www}/chain.crt?wait=60`);
    await waitingAre(server, 1);
    await renewCertificate(server.vault, 'www');
    await look();
    server.world.advance(59_000);
    const { status, headers } = await waiting;
    assert.deepEqual([status, headers.get('Certificate-Version')], [304, '2']);
  });

  test('asks for HEAD and gets 200 without a body, a record or a download of the key', async (t) => {
    const waited = await waitedServer(t);
    const { server, key, tagOf } = waited;
    const lines = [`Authorization: Bearer ${key.raw}`, `If-None-Match: ${await tagOf(waitedFile)}`];
    const waiting = server.raw('HEAD', `${waitedFile}?wait=60`, lines);
    await waitingAre(server, 1);
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    const { status, body, headers } = await waiting;
    assert.deepEqual([status, body, headers.get('Certificate-Version')], [200, '', '2']);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
  });
});

suite('a download is answered without a wait', () => {
  test('if the client has another version or sends no condition', async (t) => {
    const { server, key } = await waitedServer(t);
    for (const lines of [[], ['If-None-Match: "x"'], ['If-None-Match:']]) {
      const { status } = await server.raw('GET', `${waitedFile}?wait=300`, [
        `Authorization: Bearer ${key.raw}`,
        ...lines,
      ]);
      assert.equal(status, 200, lines.join());
    }
  });

  test('if the time is 0 or the query specifies a version', async (t) => {
    const { wait } = await waitedServer(t);
    for (const query of ['wait=0', 'version=1&wait=300', 'wait=300&version=1', 'wait=00']) {
      const response = await wait(`${waitedFile}?${query}`);
      assert.deepEqual([response.status, response.headers.get('Retry-After')], [304, null], query);
    }
  });

  test('if the time is not a number of seconds up to 300, with 400', async (t) => {
    const { wait } = await waitedServer(t);
    for (const value of [
      '301',
      '-1',
      '1.5',
      '1e2',
      '60s',
      '',
      '%20',
      '0x10',
      '99999999999999999999',
      'Infinity',
    ]) {
      for (const file of ['private.key', 'combined.pem']) {
        const response = await wait(`${www}/${file}?wait=${value}`);
        assert.deepEqual([response.status, await codeOf(response)], [400, 'invalid_request'], value);
      }
    }
    assert.equal((await wait(`${waitedFile}?wait=1&wait=2`)).status, 400);
  });

  test('if the key may not read it or the certificate does not exist', async (t) => {
    const { server, wait } = await waitedServer(t);
    await makeCertificate(server.vault, 'other');
    const { raw } = await makeKey(server.vault, { certificates: ['other'] });
    assert.equal((await wait(undefined, { key: raw })).status, 403);
    assert.equal((await wait(undefined, { key: `${raw}x` })).status, 401);
    assert.equal((await wait('/api/v1/certificates/absent/private.key?wait=60')).status, 404);
  });

  test('in a route that has nothing to wait for, with 400', async (t) => {
    const { server, key } = await waitedServer(t);
    const response = await server.get(`${www}?wait=60`, key.raw, { headers: { 'If-None-Match': '*' } });
    assert.deepEqual([response.status, await codeOf(response)], [400, 'invalid_request']);
  });
});

suite('rights that change during a wait', () => {
  test('end it with 401 if the key is revoked, and the refusal is recorded', async (t) => {
    const waited = await waitedServer(t);
    const { server, key } = waited;
    const response = await endedBy(waited, () => revokeApiKey(server.vault, localCli, key.id));
    assert.deepEqual([response.status, await codeOf(response)], [401, 'unauthenticated']);
    assert.deepEqual(
      eventsOf(server.dataDir, 'access.refuse').map(({ actor }) => actor),
      [key.actor],
    );
  });

  test('end it with 401 if another process revokes the key', async (t) => {
    const waited = await waitedServer(t);
    const { dataDir, world } = waited.server;
    const other = await testVault(t, { dataDir, world });
    const response = await endedBy(waited, () => revokeApiKey(other.vault, localCli, waited.key.id));
    assert.equal(response.status, 401);
  });

  test('end it with 401 if the secret of the key is replaced without an overlap', async (t) => {
    const waited = await waitedServer(t);
    const { server, key } = waited;
    const replace = () => rotateApiKey(server.vault, localCli, key.id, { overlap: 0 });
    assert.equal((await endedBy(waited, replace)).status, 401);
  });

  test('do not end it while the old secret is still valid, and its new version is not handed out after that', async (t) => {
    const { server, wait, look, key } = await waitedServer(t);
    const waiting = wait(`${waitedFile}?wait=300`);
    await waitingAre(server, 1);
    await rotateApiKey(server.vault, localCli, key.id, { overlap: minute });
    await look();
    server.world.advance(minute);
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal((await waiting).status, 401);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
  });

  for (const renews of [true, false]) {
    test(`end it with 401 instead of ${renews ? 200 : 304} if the key has expired`, async (t) => {
      const { server, wait } = await waitedServer(t);
      const expires_at = new Date(server.world.now() + 30_000).toISOString();
      const { raw } = await makeKey(server.vault, { name: 'brief', expires_at });
      const waiting = wait(undefined, { key: raw });
      await waitingAre(server, 1);
      if (renews) await renewCertificate(server.vault, 'www');
      server.world.advance(renews ? 30_000 : 60_000);
      assert.equal((await waiting).status, 401);
    });
  }

  test('end it with 403 if the certificate is removed from the allowlist', async (t) => {
    const waited = await waitedServer(t);
    const { server, key } = waited;
    await makeCertificate(server.vault, 'other');
    const change = parseInput(updateApiKeyInput, { certificates: ['other'] });
    const response = await endedBy(waited, () => changeApiKey(server.vault, localCli, key.id, change));
    assert.deepEqual([response.status, await codeOf(response)], [403, 'forbidden']);
  });

  test('end it with 403 if the address of the client is no longer allowed', async (t) => {
    const waited = await waitedServer(t);
    const { server, key } = waited;
    const change = parseInput(updateApiKeyInput, { allowed_networks: ['192.0.2.0/24'] });
    const response = await endedBy(waited, () => changeApiKey(server.vault, localCli, key.id, change));
    assert.equal(response.status, 403);
  });

  test('end it with 404 if the certificate is deleted', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const response = await endedBy(waited, () =>
      deleteCertificate(server.vault, localCli, 'www', { force: true }),
    );
    assert.deepEqual([response.status, await codeOf(response)], [404, 'certificate_not_found']);
  });

  test('do not end it if they still include the certificate', async (t) => {
    const { server, wait, look, key } = await waitedServer(t);
    const waiting = wait();
    await waitingAre(server, 1);
    const change = parseInput(updateApiKeyInput, { certificates: ['www'], name: 'renamed' });
    await changeApiKey(server.vault, localCli, key.id, change);
    await look();
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal((await waiting).status, 200);
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.download').map(({ actor }) => actor),
      [`api-key:${key.id}:renamed`],
    );
  });
});

suite('the record of a wait', () => {
  test('is one download with its version, recorded before the response', async (t) => {
    const waited = await waitedServer(t);
    const { server, key } = waited;
    const response = await endedBy(waited, () => renewCertificate(server.vault, 'www'));
    const [event, ...noMore] = eventsOf(server.dataDir, 'certificate.download');
    assert.deepEqual([event?.actor, event?.detail.version, noMore.length], [key.actor, 2, 0]);
    assert.equal(event?.request_id, response.headers.get('X-Request-Id'));
  });

  test('comes before the response, which is 503 if the download cannot be recorded', async (t) => {
    const waited = await waitedServer(t);
    const { server } = waited;
    const response = await endedBy(waited, async () => {
      await renewCertificate(server.vault, 'www');
      t.mock.method(server.vault.db, 'append', async () => {
        throw new StorageError('the disk is full');
      });
    });
    assert.equal(response.status, 503);
    assert.doesNotMatch(await response.text(), /PRIVATE KEY/);
  });

  test('is nothing but a count of 304 if there was no new version', async (t) => {
    const { server, wait } = await waitedServer(t);
    const waiting = wait();
    await waitingAre(server, 1);
    const unchanged = () =>
      server.vault.meter.series()['vault_downloads_not_modified_total{artifact="private.key"}'];
    assert.equal(unchanged(), 0);
    server.world.advance(60_000);
    assert.equal((await waiting).status, 304);
    assert.equal(unchanged(), 1);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
  });

  test('is one line of the server log with the time that it waited, which is not the time of the vault', async (t) => {
    const waited = await waitedServer(t);
    const { server, wait, look, key } = waited;
    const waiting = wait();
    await waitingAre(server, 1);
    for (let second = 1; second < 7; second += 1) await look();
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal((await waiting).status, 200);
    const lines = server.log.lines
      .map((line) => JSON.parse(line))
      .filter(({ waited_ms: ms }) => ms !== undefined);
    assert.equal(lines.length, 1);
    const { status, actor, ms, waited_ms, message } = lines[0];
    assert.deepEqual([message, status, actor, ms, waited_ms], ['request', 200, key.actor, 0, 7000]);
  });

  test('counts as one request of a key with a limit, however often its rights are checked', async (t) => {
    const { server, wait, look } = await waitedServer(t, { apiKeyRate: 60 });
    const { raw } = await makeKey(server.vault);
    const waiting = wait(`${waitedFile}?wait=300`, { key: raw });
    await waitingAre(server, 1);
    for (let change = 0; change < 70; change += 1) {
      await makeKey(server.vault, { name: `changes the vault ${change}` });
      await look();
    }
    await renewCertificate(server.vault, 'www');
    server.world.advance(1000);
    assert.equal((await waiting).status, 200);
  });
});
