/** The downloads: what is in each artifact, under both sets of names, in which version, and with which headers. */
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { artifactFiles } from '../../../harness/http/artifact-files.ts';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import {
  breakSealedKeys,
  eventsOf,
  importOne,
  makeCertificate,
  makeKey,
  makePending,
} from '../../../harness/http/fixtures.ts';

const www = '/api/v1/certificates/www';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  await makeCertificate(server.vault, 'www');
  const { raw } = await makeKey(server.vault);
  const body = async (path: string) => {
    const response = await server.get(path, raw);
    assert.equal(response.status, 200, path);
    return response.text();
  };
  return { server, raw, body };
}

/** The certificates in a PEM text; anything beside them is a mistake. */
function certificatesIn(pem: string): X509Certificate[] {
  const blocks =
    pem.match(/-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n/g) ?? [];
  assert.equal(blocks.join(''), pem);
  return blocks.map((block) => new X509Certificate(block));
}

async function refusal(server: CheckedServer, path: string, key: string) {
  const response = await server.get(path, key);
  return `${response.status} ${await codeOf(response)}`;
}

suite('the artifacts', () => {
  test('are the leaf, the chain without the root, both, and a PKCS#8 key that fits the leaf', async (t) => {
    const { body } = await prepared(t);
    const [leaf, ...noMore] = certificatesIn(await body(`${www}/certificate.crt`));
    const chain = certificatesIn(await body(`${www}/chain.crt`));
    assert(leaf);
    assert.deepEqual([noMore.length, leaf.ca, leaf.subjectAltName], [0, false, 'DNS:www.example.test']);
    assert.deepEqual([chain.length, chain[0]?.ca], [1, true]);
    assert(chain[0] && leaf.verify(chain[0].publicKey));
    assert.notEqual(chain[0].subject, chain[0].issuer, 'the root is not in the chain');
    const full = certificatesIn(await body(`${www}/fullchain.crt`));
    assert.deepEqual(
      full.map(({ fingerprint256 }) => fingerprint256),
      [leaf, ...chain].map((one) => one.fingerprint256),
    );
    const key = await body(`${www}/private.key`);
    assert.match(key, /^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+-----END PRIVATE KEY-----\n$/);
    assert(leaf.checkPrivateKey(createPrivateKey(key)));
    const root = new X509Certificate(await body('/client/ca.crt'));
    assert(chain[0].verify(root.publicKey));
  });

  test('are the same bytes with the same entity tag under their other names', async (t) => {
    const { server, raw } = await prepared(t);
    for (const [name, other] of [
      ['fullchain.crt', 'fullchain.pem'],
      ['private.key', 'private-key.pem'],
    ]) {
      const [one, two] = [await server.get(`${www}/${name}`, raw), await server.get(`${www}/${other}`, raw)];
      assert.equal(one.headers.get('ETag'), two.headers.get('ETag'));
      assert.deepEqual(await one.bytes(), await two.bytes());
    }
  });

  test('carry type, length, strong tag, version and cache rules', async (t) => {
    const { server, raw } = await prepared(t);
    const tags = new Set<string>();
    for (const file of artifactFiles) {
      const { status, headers, ...response } = await server.raw('GET', `${www}/${file}`, [
        `Authorization: Bearer ${raw}`,
      ]);
      assert.equal(status, 200);
      assert.equal(headers.get('Content-Type'), 'application/x-pem-file');
      assert.equal(headers.get('Content-Length'), String(response.body.length));
      assert.match(headers.get('ETag') ?? '', /^"[A-Za-z0-9_-]{20,}"$/);
      assert.equal(headers.get('Certificate-Version'), '1');
      assert.equal(
        headers.get('Cache-Control'),
        file.startsWith('private') ? 'no-store' : 'private, no-cache',
      );
      assert.equal(headers.get('Content-Disposition'), `attachment; filename="www-${file}"`);
      tags.add(headers.get('ETag') ?? '');
    }
    assert.equal(tags.size, 4, 'each content has a tag of its own');
  });

  test('do not use a hash of the private key as its entity tag', async (t) => {
    const { server, raw } = await prepared(t);
    const response = await server.get(`${www}/private.key`, raw);
    const content = await response.bytes();
    const tag = response.headers.get('ETag')?.slice(1, -1) ?? '';
    for (const algorithm of ['sha1', 'sha256', 'sha384', 'sha512', 'md5']) {
      for (const encoding of ['base64url', 'hex'] as const) {
        assert(!createHash(algorithm).update(content).digest(encoding).startsWith(tag.slice(0, 8)));
      }
    }
  });

  test('have safe file names for wildcards', async (t) => {
    const { server, raw } = await prepared(t);
    await makeCertificate(server.vault, '*.example.test', ['*.example.test']);
    for (const name of ['*.example.test', '%2A.example.test', '%2a%2eexample.test']) {
      const response = await server.get(`/api/v1/certificates/${name}/fullchain.pem`, raw);
      assert.equal(
        response.headers.get('Content-Disposition'),
        'attachment; filename="_.example.test-fullchain.pem"',
      );
    }
  });

  test('are an empty chain, not an error, where a certificate was imported without one', async (t) => {
    const { server, body, raw } = await prepared(t);
    await importOne(server.vault, 'bare', { chain: false });
    assert.equal(await body('/api/v1/certificates/bare/chain.crt'), '');
    assert.equal(
      await body('/api/v1/certificates/bare/fullchain.crt'),
      await body('/api/v1/certificates/bare/certificate.crt'),
    );
    const head = await server.get('/api/v1/certificates/bare/chain.crt', raw, { method: 'HEAD' });
    assert.equal(head.headers.get('Content-Length'), '0');
  });

  test('are complete for any requested range', async (t) => {
    const { server, raw, body } = await prepared(t);
    const whole = await body(`${www}/fullchain.pem`);
    for (const Range of ['bytes=0-9', 'bytes=5-', 'bytes=99999999-', 'lines=1-2', '???']) {
      const response = await server.get(`${www}/fullchain.pem`, raw, {
        headers: { Range, 'If-Range': '"x"' },
      });
      assert.equal(response.status, 200);
      assert.equal(await response.text(), whole);
      assert.equal(response.headers.get('Content-Range'), null);
    }
  });
});

suite('HEAD', () => {
  test('has the headers of GET and no body, even for the private key, and is not recorded', async (t) => {
    const { server, raw } = await prepared(t);
    const lines = [`Authorization: Bearer ${raw}`];
    for (const file of artifactFiles) {
      const recorded = eventsOf(server.dataDir, 'certificate.download').length;
      const head = await server.raw('HEAD', `${www}/${file}`, lines);
      const get = await server.raw('GET', `${www}/${file}`, lines);
      const own = ['x-request-id', 'date'];
      const shared = (headers: Headers) => [...headers].filter(([name]) => !own.includes(name));
      assert.deepEqual([head.status, head.body, shared(head.headers)], [200, '', shared(get.headers)]);
      assert.equal(
        eventsOf(server.dataDir, 'certificate.download').length,
        recorded + 1,
        'GET alone is recorded',
      );
    }
  });

  test('decrypts nothing', async (t) => {
    const { server, raw } = await prepared(t);
    breakSealedKeys(server.dataDir);
    assert.equal(await refusal(server, `${www}/private.key`, raw), '500 internal');
    const { status } = await server.get(`${www}/private.key`, raw, { method: 'HEAD' });
    assert.equal(status, 200);
  });
});

suite('a download', () => {
  test('of a pending certificate is 409, and of an unknown one 404', async (t) => {
    const { server, raw } = await prepared(t);
    await makePending(server.vault, 'pending');
    assert.equal(
      await refusal(server, '/api/v1/certificates/pending/private.key', raw),
      '409 no_current_version',
    );
    assert.equal(
      await refusal(server, '/api/v1/certificates/pending/chain.crt?version=1', raw),
      '404 version_not_found',
    );
    assert.equal(
      await refusal(server, '/api/v1/certificates/absent/private.key', raw),
      '404 certificate_not_found',
    );
    assert.equal(
      await refusal(server, '/api/v1/certificates/absent/private.key?version=1', raw),
      '404 certificate_not_found',
    );
  });
});
