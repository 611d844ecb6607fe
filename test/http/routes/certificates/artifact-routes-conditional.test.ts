/** Conditional downloads over real HTTP: what a 304 carries, and that it costs neither a record, a write nor a key. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { watchWrites } from '../../../harness/database/outside-database.ts';
import { artifactFiles } from '../../../harness/http/artifact-files.ts';
import { checkedServer } from '../../../harness/http/checked.ts';
import {
  breakSealedKeys,
  eventsOf,
  importOne,
  makeCertificate,
  makeKey,
  renewCertificate,
} from '../../../harness/http/fixtures.ts';

const file = '/api/v1/certificates/www/private.key';
async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'www');
  const { raw } = await makeKey(server.vault);
  const etag = (await server.get(file, raw, { method: 'HEAD' })).headers.get('ETag') ?? '';
  const ask = (lines: readonly string[], method = 'GET', target = file) =>
    server.raw(method, target, [`Authorization: Bearer ${raw}`, ...lines]);
  return { server, raw, etag, ask };
}

suite('a conditional download', () => {
  test('of an unchanged artifact returns 304 with ETag, version and Cache-Control, and no body', async (t) => {
    const { ask } = await prepared(t);
    for (const name of artifactFiles) {
      const target = file.replace('private.key', name);
      const etag = (await ask([], 'HEAD', target)).headers.get('ETag') ?? '';
      for (const method of ['GET', 'HEAD']) {
        const { status, body, headers } = await ask([`If-None-Match: ${etag}`], method, target);
        assert.deepEqual([status, body, headers.get('ETag')], [304, '', etag]);
        assert.equal(headers.get('Certificate-Version'), '1');
        assert.equal(
          headers.get('Cache-Control'),
          name.startsWith('private') ? 'no-store' : 'private, no-cache',
        );
        assert.equal(headers.get('Content-Type'), null);
        assert.equal(headers.get('Content-Length'), null);
      }
    }
  });

  test('compares lists, weak tags, several header lines and the star', async (t) => {
    const { ask, etag } = await prepared(t);
    const unchanged = [
      [`If-None-Match: "x", ${etag}`],
      [`If-None-Match: "with,comma",W/${etag}`],
      [`If-None-Match: W/${etag}`],
      ['If-None-Match: *'],
      ['If-None-Match: "x"', `If-None-Match: ${etag}`],
      [`if-none-match:${etag}`, 'If-None-Match: "y", "z"'],
    ];
    for (const lines of unchanged) assert.equal((await ask(lines)).status, 304, lines.join());
    const changed = [
      ['If-None-Match: "x"'],
      [`If-None-Match: ${etag.slice(1, -1)}`],
      [`If-None-Match: "x${etag.slice(1)}`],
      [`If-None-Match: ${etag.toUpperCase()}`],
      [`If-None-Match: ${etag.slice(0, -1)},"`],
      ['If-None-Match:'],
      ['If-None-Match: W/'],
      [`If-None-Match: *, ${etag}`],
      [`If-Match: ${etag}`],
      ['If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT'],
    ];
    for (const lines of changed) assert.equal((await ask(lines)).status, 200, lines.join());
  });

  test('returns the new version after a renewal, and 304 for the old tag with the old version', async (t) => {
    const { server, ask, etag } = await prepared(t);
    await renewCertificate(server.vault, 'www');
    const fresh = await ask([`If-None-Match: ${etag}`]);
    assert.deepEqual([fresh.status, fresh.headers.get('Certificate-Version')], [200, '2']);
    const pinned = await ask([`If-None-Match: ${etag}`], 'GET', `${file}?version=1`);
    assert.deepEqual([pinned.status, pinned.headers.get('Certificate-Version')], [304, '1']);
    const star = await ask(['If-None-Match: *'], 'GET', `${file}?version=1`);
    assert.deepEqual([star.status, star.headers.get('ETag')], [304, etag]);
  });

  test('keeps the tag of a chain that a renewal did not change', async (t) => {
    const { server, ask } = await prepared(t);
    const chain = '/api/v1/certificates/www/chain.crt';
    const etag = (await ask([], 'HEAD', chain)).headers.get('ETag');
    await renewCertificate(server.vault, 'www');
    const { status, headers } = await ask([`If-None-Match: ${etag}`], 'GET', chain);
    assert.deepEqual([status, headers.get('Certificate-Version')], [304, '2']);
  });

  test('never returns 304 for unknown or unauthorized artifacts', async (t) => {
    const { server, ask } = await prepared(t);
    await importOne(server.vault, 'other', { chain: true });
    const star = ['If-None-Match: *'];
    assert.equal((await ask(star, 'GET', '/api/v1/certificates/absent/private.key')).status, 404);
    assert.equal((await ask(star, 'GET', `${file}?version=9`)).status, 404);
    assert.equal((await ask(star, 'GET', `${file}?version=x`)).status, 400);
    assert.equal((await server.raw('GET', file, star)).status, 401);
    const { raw } = await makeKey(server.vault, { certificates: ['other'] });
    assert.equal((await server.raw('GET', file, [`Authorization: Bearer ${raw}`, ...star])).status, 403);
  });

  test('records, decrypts and writes nothing if the artifact is unchanged', async (t) => {
    const { server, ask, etag } = await prepared(t);
    await server.vault.keyUse.write();
    breakSealedKeys(server.dataDir);
    const writes = t.mock.method(server.vault.db, 'write');
    const appended = t.mock.method(server.vault.audit, 'append');
    const written = watchWrites(t, server.dataDir);
    const before = written();
    assert.equal((await ask([`If-None-Match: ${etag}`])).status, 304);
    assert.equal((await ask(['If-None-Match: *'], 'HEAD')).status, 304);
    assert.equal(written(), before);
    assert.equal(writes.mock.callCount() + appended.mock.callCount(), 0);
    assert.deepEqual(eventsOf(server.dataDir, 'certificate.download'), []);
    const whole = await ask([]);
    assert.equal(whole.status, 500, 'the key is really broken');
    assert.doesNotMatch(whole.body, /seal|damage|key/i);
    assert.deepEqual(
      eventsOf(server.dataDir, 'certificate.download'),
      [],
      'what did not leave is not recorded',
    );
  });
});
