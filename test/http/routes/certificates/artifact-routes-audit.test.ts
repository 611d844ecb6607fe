/**
 * The promise of downloads: nothing leaves unrecorded, records are durable before the first byte, many share a commit.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { StorageError } from '../../../../src/base/storage-error.ts';
import { holdLog, lockAwaited, outside, refuse } from '../../../harness/database/outside-database.ts';
import { testedEngine } from '../../../harness/database/tested-engine.ts';
import { artifactFiles } from '../../../harness/http/artifact-files.ts';
import { checkedServer } from '../../../harness/http/checked.ts';
import { eventsOf, makeCertificate, makeKey, renewCertificate } from '../../../harness/http/fixtures.ts';
import type { TestServer } from '../../../harness/http/test-server.ts';

const www = '/api/v1/certificates/www';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'www');
  const key = await makeKey(server.vault, { name: 'web server' });
  const downloads = () => eventsOf(server.dataDir, 'certificate.download');
  return { server, key, downloads };
}

/** How many transactions have recorded downloads since. */
function commitsOf(t: TestContext, { vault, dataDir }: TestServer): () => number {
  const writes = t.mock.method(vault.db, 'write');
  if (testedEngine === 'sqlite') return () => writes.mock.callCount();
  const sql =
    "select count(distinct cast(xmin as text)) from audit_events where action = 'certificate.download'";
  return () => outside(dataDir, (db) => db.prepare(sql).pluck().get()) as number;
}

suite('a download', () => {
  test('has exactly one event, which is in the database when the response arrives', async (t) => {
    const { server, key, downloads } = await prepared(t);
    await renewCertificate(server.vault, 'www');
    const expected = [];
    for (const [index, artifact] of artifactFiles.entries()) {
      const version = (index % 2) + 1;
      const response = await server.get(`${www}/${artifact}?version=${version}`, key.raw);
      expected.push({
        actor: key.actor,
        action: 'certificate.download',
        resource: 'certificate:www',
        detail: { artifact, version },
        ip: '127.0.0.1',
        request_id: response.headers.get('X-Request-Id'),
      });
      assert.deepEqual(downloads(), expected);
    }
    assert.match(expected[0]?.actor ?? '', /^api-key:\d+:web server$/);
  });

  test('records no event for 304, HEAD, metadata, rejected requests and unknown certificates', async (t) => {
    const { server, key, downloads } = await prepared(t);
    const star = { headers: { 'If-None-Match': '*' } };
    const statuses = [];
    for (const [path, init] of [
      [`${www}/private.key`, star],
      [`${www}/private.key`, { method: 'HEAD' }],
      [`${www}/private.key?version=2`, {}],
      [`${www}/private.key?version=x`, {}],
      ['/api/v1/certificates/absent/private.key', {}],
      [`${www}/private.key`, { method: 'DELETE' }],
      [www, {}],
      [`${www}/versions`, {}],
      ['/api/v1/certificates', {}],
    ] as const) {
      statuses.push((await server.get(path, key.raw, init)).status);
    }
    assert.deepEqual(statuses, [304, 200, 404, 400, 404, 405, 200, 200, 200]);
    assert.deepEqual(downloads(), []);
  });

  test('shares a commit with concurrent downloads, and is not sent before the commit', async (t) => {
    const { server, key, downloads } = await prepared(t);
    const count = 20;
    const { vault } = server;
    const gate = Promise.withResolvers<void>();
    const allWait = Promise.withResolvers<void>();
    const record = vault.db.append.bind(vault.db);
    t.mock.method(vault.db, 'append', async (events: Parameters<typeof record>[0]) => {
      await gate.promise;
      return record(events);
    });
    const commits = commitsOf(t, server);
    const append = vault.audit.append.bind(vault.audit);
    const appended = t.mock.method(vault.audit, 'append', (event: Parameters<typeof append>[0]) => {
      if (appended.mock.callCount() + 1 === count) allWait.resolve();
      return append(event);
    });
    let answered = 0;
    const requests = Array.from({ length: count }, async (_, index) => {
      const response = await server.get(`${www}/${artifactFiles[index % artifactFiles.length]}`, key.raw);
      answered += 1;
      const id = response.headers.get('X-Request-Id');
      assert.equal(downloads().filter(({ request_id }) => request_id === id).length, 1);
      return response.status;
    });
    await allWait.promise;
    assert.deepEqual([answered, downloads().length], [0, 0], 'nothing is answered before it is recorded');
    gate.resolve();
    assert.deepEqual(new Set(await Promise.all(requests)), new Set([200]));
    assert.equal(downloads().length, count);
    // Those that came before the first commit began are in it, and all that came during it share the second.
    assert(commits() >= 1 && commits() <= 2, `${commits()} commits for ${count} downloads`);
  });

  test('of a private key is recorded before the response can be read', async (t) => {
    const { server, key, downloads } = await prepared(t);
    for (let count = 1; count <= 5; count += 1) {
      const reply = await server.raw('GET', `${www}/private.key`, [`Authorization: Bearer ${key.raw}`]);
      assert.match(reply.body, /PRIVATE KEY/);
      assert.equal(downloads().length, count);
    }
  });
});

suite('a download that cannot be recorded', () => {
  /** A refusal that says when to come again, and gives away nothing of the artifact or of the inside. */
  async function assertRefused(
    server: Awaited<ReturnType<typeof checkedServer>>,
    raw: string,
  ): Promise<void> {
    for (const file of artifactFiles) {
      const reply = await server.raw('GET', `${www}/${file}`, [`Authorization: Bearer ${raw}`]);
      assert.deepEqual([reply.status, reply.headers.get('Content-Type')], [503, 'application/problem+json']);
      assert.match(reply.headers.get('Retry-After') ?? '', /^[1-9]\d*$/);
      assert.equal(JSON.parse(reply.body).code, 'unavailable');
      assert.doesNotMatch(reply.body, /BEGIN|SQLITE|database|disk|\/tmp/);
      for (const header of ['ETag', 'Certificate-Version', 'Content-Disposition'])
        assert.equal(reply.headers.get(header), null);
    }
  }

  test('is 503 when the commit fails, and works again when commits do', async (t) => {
    const { server, key, downloads } = await prepared(t);
    const failing = t.mock.method(server.vault.db, 'append', async () => {
      throw new StorageError('the disk with the database is full');
    });
    await assertRefused(server, key.raw);
    assert.deepEqual(downloads(), []);
    const logged = server.log.lines.filter((line) => line.includes('"level":"error"'));
    assert.equal(logged.length, artifactFiles.length);
    assert(logged.every((line) => /"request_id":"[\w-]+"/.test(line) && line.includes('disk')));
    assert.doesNotMatch(server.log.lines.join(), /BEGIN|vk_/);
    failing.mock.restore();
    assert.equal((await server.get(`${www}/private.key`, key.raw)).status, 200);
    assert.equal(downloads().length, 1);
  });

  test('is 503 when another process holds the database for longer than the vault waits', async (t) => {
    const { server, key, downloads } = await prepared(t);
    const other = holdLog(server.dataDir);
    const answer = server.get(`${www}/private.key`, key.raw);
    await lockAwaited(server);
    server.world.advance(60_000);
    const response = await answer;
    assert.deepEqual([response.status, response.headers.get('Retry-After')], [503, '5']);
    assert.doesNotMatch(await response.text(), /BEGIN|locked|vault\.db/);
    other.release();
    assert.deepEqual(downloads(), []);
  });

  test('waits for another process that holds the database for a moment', async (t) => {
    const { server, key, downloads } = await prepared(t);
    const other = holdLog(server.dataDir);
    const answer = server.get(`${www}/private.key`, key.raw);
    await lockAwaited(server);
    assert.deepEqual(downloads(), []);
    other.release();
    server.world.advance(5);
    assert.equal((await answer).status, 200);
    assert.equal(downloads().length, 1);
  });

  test('is 503 without artifact contents when the audit log rejects the event', async (t) => {
    const { server, key, downloads } = await prepared(t);
    refuse(server.dataDir, 'insert', 'audit_events', { message: 'no more' });
    for (const file of artifactFiles) {
      const response = await server.get(`${www}/${file}`, key.raw);
      assert.equal(response.status, 503);
      assert.doesNotMatch(await response.text(), /BEGIN|no more/);
    }
    assert.deepEqual(downloads(), []);
  });
});
