/** Metadata and lists: what they show, how they are paged, and that a key sees its own certificates alone. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import {
  importOne,
  makeCertificate,
  makeKey,
  makePending,
  renewCertificate,
} from '../../../harness/http/fixtures.ts';
import { converse, parseReply } from '../../../harness/http/raw.ts';

type Named = { readonly name: string };
type Numbered = { readonly version: number; readonly current: boolean };

async function prepared(t: Parameters<typeof checkedServer>[0], names: readonly string[] = ['www']) {
  const server = await checkedServer(t);
  for (const name of names) await makeCertificate(server.vault, name, ['www.example.test']);
  const { raw } = await makeKey(server.vault);
  const json = async (path: string, key = raw) => {
    const response = await server.get(path, key);
    assert.equal(response.status, 200, path);
    assert.equal(response.headers.get('Cache-Control'), 'no-store');
    return response.json();
  };
  return { server, raw, json };
}

/** All elements of a list, by following its links; it fails where a link leads elsewhere or in a circle. */
async function follow<T>(server: CheckedServer, start: string, key: string): Promise<T[][]> {
  const pages: T[][] = [];
  let path: string | undefined = start;
  while (path !== undefined) {
    assert(pages.length < 50);
    const response: Response = await server.get(path, key);
    assert.equal(response.status, 200);
    pages.push((await response.json()) as T[]);
    const link: string | null = response.headers.get('Link');
    const next: string | undefined = /^<([^>]+)>; rel="next"$/.exec(link ?? '')?.[1];
    assert.equal(link === null, next === undefined, `${link}`);
    if (next !== undefined) assert(next.startsWith(`${server.url}/`), next);
    path = next?.slice(server.url.length);
  }
  return pages;
}

suite('metadata', () => {
  test('has the URIs and email addresses that the next version will have', async (t) => {
    const { server, json } = await prepared(t, ['plain']);
    const names = { uris: ['spiffe://example.test/db'], emails: ['ops@example.test'] };
    await makeCertificate(server.vault, 'db', ['db.example.test'], names);
    const shown = (name: string) =>
      json(`/api/v1/certificates/${name}`) as Promise<{
        domains: string[];
        uris: string[];
        emails: string[];
      }>;
    const { domains, uris, emails } = await shown('db');
    assert.deepEqual({ domains, uris, emails }, { domains: ['db.example.test'], ...names });
    const plain = await shown('plain');
    assert.deepEqual([plain.uris, plain.emails], [[], []]);
    const listed = (await json('/api/v1/certificates')) as { name: string; uris: string[] }[];
    assert.deepEqual(
      listed.map((one) => [one.name, one.uris]),
      [
        ['db', names.uris],
        ['plain', []],
      ],
    );
  });

  test('reports current version, next renewal and artifacts that match the downloads', async (t) => {
    const { server, raw, json } = await prepared(t);
    await renewCertificate(server.vault, 'www');
    const shown = (await json('/api/v1/certificates/www')) as {
      current_version: Record<string, unknown>;
      renewal: Record<string, unknown>;
      artifacts: { file: string; url: string; etag: string }[];
    };
    const leaf = new X509Certificate(
      await (await server.get('/api/v1/certificates/www/certificate.crt', raw)).text(),
    );
    const { current_version: version } = shown;
    assert.deepEqual(
      [version.version, version.serial, version.current, version.source],
      [2, leaf.serialNumber, true, 'local-ca'],
    );
    assert.equal(version.fingerprint_sha256, leaf.fingerprint256.replaceAll(':', '').toLowerCase());
    assert.equal(Date.parse(String(version.not_after)), leaf.validToDate.getTime());
    assert(String(shown.renewal.next_at) < String(version.not_after));
    const files = ['certificate.crt', 'chain.crt', 'fullchain.crt', 'private.key'];
    assert.deepEqual(
      shown.artifacts.map(({ file }) => file),
      files,
    );
    for (const { url, etag } of shown.artifacts) {
      assert(url.startsWith(`${server.url}/api/v1/certificates/www/`));
      const head = await server.get(url.slice(server.url.length), raw, { method: 'HEAD' });
      assert.equal(head.headers.get('ETag'), etag);
    }
    assert.doesNotMatch(JSON.stringify(shown), /BEGIN|sealed|certificate_id/);
  });

  test('shows what was imported and what is pending', async (t) => {
    const { server, json } = await prepared(t);
    await importOne(server.vault, 'imported', { chain: true });
    await makePending(server.vault, 'pending');
    const imported = (await json('/api/v1/certificates/imported')) as Record<string, unknown>;
    assert.deepEqual([imported.issuer, imported.auto_renew, imported.status], [null, false, 'valid']);
    const pending = (await json('/api/v1/certificates/pending')) as Record<string, unknown>;
    assert.deepEqual([pending.current_version, pending.artifacts, pending.status], [null, [], 'pending']);
    assert.deepEqual(await json('/api/v1/certificates/pending/versions'), []);
  });

  test('derives the status from the clock', async (t) => {
    const { server, json } = await prepared(t);
    const status = async () => ((await json('/api/v1/certificates/www')) as { status: string }).status;
    const day = 86_400_000;
    const seen = [];
    for (const days of [0, 80, 11]) {
      server.world.advance(days * day);
      seen.push(await status());
    }
    assert.deepEqual(seen, ['valid', 'expiring', 'expired']);
  });

  test('has artifact URLs with the Host header of the request', async (t) => {
    const { server, raw } = await prepared(t);
    for (const host of ['vault.test', 'other.test:8443', 'vault.test']) {
      const lines = [`Authorization: Bearer ${raw}`, 'Connection: close', `Host: ${host}`];
      const { body } = parseReply(
        await converse(server.url, `GET /api/v1/certificates/www HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`),
      );
      assert.equal(
        JSON.parse(body).artifacts[0].url,
        `http://${host}/api/v1/certificates/www/certificate.crt`,
      );
    }
  });

  test('has links and artifact URLs with the public URL if one is set', async (t) => {
    const server = await checkedServer(t, { publicUrl: 'https://vault.example.test/base' });
    for (const name of ['a', 'b']) await makeCertificate(server.vault, name);
    const { raw } = await makeKey(server.vault);
    const list = await server.get('/api/v1/certificates?limit=1', raw);
    const next = 'https://vault.example.test/base/api/v1/certificates?limit=1&after=a';
    assert.equal(list.headers.get('Link'), `<${next}>; rel="next"`);
    assert.match(
      await list.text(),
      /"url":"https:\/\/vault\.example\.test\/base\/api\/v1\/certificates\/a\/private\.key"/,
    );
  });

  test('does not echo an invalid Host header', async (t) => {
    const { server, raw } = await prepared(t);
    for (const host of ['evil"><script>', 'a b', 'user@host', 'host/path', '']) {
      const lines = [`Authorization: Bearer ${raw}`, 'Connection: close', `Host: ${host}`];
      const text = await converse(
        server.url,
        `GET /api/v1/certificates HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`,
      );
      const { status, body } = parseReply(text);
      if (status === 200)
        assert.equal(JSON.parse(body)[0].artifacts[0].url, '/api/v1/certificates/www/certificate.crt');
      else assert.equal(status, 400);
    }
  });

  test('of an unknown certificate is 404 for a key with access to all certificates', async (t) => {
    const { server, raw } = await prepared(t);
    for (const last of ['', '/versions', '/renewals/1']) {
      const response = await server.get(`/api/v1/certificates/absent${last}`, raw);
      assert.deepEqual([response.status, await codeOf(response)], [404, 'certificate_not_found']);
    }
  });
});

suite('the list of certificates', () => {
  const names = ['a', 'B', '_x', 'b', '*.example.test', 'a-1', 'a.1', 'z'];

  test('is sorted by name, and its pages have each element once, for any page size', async (t) => {
    const { server, raw, json } = await prepared(
      t,
      names.filter((name) => name !== '_x'),
    );
    await importOne(server.vault, '_x', { chain: false });
    const all = ((await json('/api/v1/certificates')) as Named[]).map(({ name }) => name);
    assert.deepEqual(all, names.toSorted());
    for (const limit of [1, 2, 3, names.length - 1, names.length, 1000]) {
      const pages = await follow<Named>(server, `/api/v1/certificates?limit=${limit}`, raw);
      assert.deepEqual(
        pages.flat().map(({ name }) => name),
        all,
      );
      assert.equal(pages.length, Math.ceil(names.length / limit), `no empty page at the end of ${limit}`);
    }
  });

  test('has only what is in the allowlist, even page by page', async (t) => {
    const { server } = await prepared(t, ['a', 'b', 'c', 'd']);
    const { raw } = await makeKey(server.vault, { certificates: ['d', 'b', 'a'] });
    const pages = await follow<Named>(server, '/api/v1/certificates?limit=1', raw);
    assert.deepEqual(
      pages.flat().map(({ name }) => name),
      ['a', 'b', 'd'],
    );
    assert.equal(pages.length, 3);
  });

  test('continues after a name that does not exist, and is empty after the last', async (t) => {
    const { json } = await prepared(t, ['a', 'c']);
    const after = async (name: string) =>
      ((await json(`/api/v1/certificates?after=${encodeURIComponent(name)}`)) as Named[]).map(
        (one) => one.name,
      );
    assert.deepEqual(await after('b'), ['c']);
    assert.deepEqual(await after('c'), []);
    assert.deepEqual(await after("'; drop table certificates --"), ['a', 'c']);
    assert.deepEqual(await after(''), ['a', 'c']);
  });
});

suite('the list of versions', () => {
  test('has the newest first and says which is current, page by page', async (t) => {
    const { server, raw } = await prepared(t);
    for (let count = 0; count < 4; count += 1) await renewCertificate(server.vault, 'www');
    for (const limit of [1, 2, 5, 6]) {
      const pages = await follow<Numbered>(server, `/api/v1/certificates/www/versions?limit=${limit}`, raw);
      assert.deepEqual(
        pages.flat().map(({ version }) => version),
        [5, 4, 3, 2, 1],
      );
      assert.deepEqual(
        pages
          .flat()
          .filter(({ current }) => current)
          .map(({ version }) => version),
        [5],
      );
      assert.equal(pages.length, Math.ceil(5 / limit));
    }
  });
});

suite('the lists of certificates and versions', () => {
  test('reject invalid limits and positions, and unknown parameters', async (t) => {
    const { server, raw } = await prepared(t);
    const both = ['limit=0', 'limit=1001', 'limit=abc', 'limit=-1', 'limit=1.5', 'limit=', 'limit=1&limit=2'];
    both.push('page=2', 'Limit=1', '__proto__=1', 'after=a&after=b');
    const queries = [
      ...both.map((query) => `/api/v1/certificates?${query}`),
      ...both.map((query) => `/api/v1/certificates/www/versions?${query}`),
      `/api/v1/certificates?after=${'a'.repeat(129)}`,
      ...['after=0', 'after=abc', 'after='].map((query) => `/api/v1/certificates/www/versions?${query}`),
    ];
    for (const path of queries) {
      const response = await server.get(path, raw);
      assert.deepEqual([response.status, await codeOf(response)], [400, 'invalid_request'], path);
    }
    for (const limit of [1, 1000])
      assert.equal((await server.get(`/api/v1/certificates?limit=${limit}`, raw)).status, 200);
  });
});
