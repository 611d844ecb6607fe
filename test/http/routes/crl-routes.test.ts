/** The CRLs of the private CA over HTTP, and their address in what it issues. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { crlBaseUrl, recordCrlBaseUrl } from '../../../src/domain/private-ca/crl-address.ts';
import { issueFromLocalCa } from '../../../src/domain/private-ca/local-ca.ts';
import { extensionOf, identifier } from '../../harness/ca/private-chain.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { needs } from '../../harness/processes/missing-program.ts';

suite('a CRL', () => {
  test('is DER without credentials, with an entity tag that holds until it is signed again', async (t) => {
    const server = await checkedServer(t);
    const response = await server.get('/client/ca.crl');
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('Content-Type'), 'application/pkix-crl');
    const body = Buffer.from(await response.arrayBuffer());
    assert.equal(body[0], 0x30);
    const etag = response.headers.get('ETag') ?? '';
    const unchanged = (tag: string) =>
      server.get('/client/ca.crl', undefined, { headers: { 'If-None-Match': tag } });
    assert.equal((await unchanged(etag)).status, 304);
    assert.equal((await unchanged('"other"')).status, 200);
    const head = await server.get('/client/ca.crl', undefined, { method: 'HEAD' });
    assert.equal(head.headers.get('Content-Length'), String(body.length));
    server.world.advance(day);
    assert.equal((await unchanged(etag)).status, 200);
  });

  test('is there for each CA certificate, and all are in one file', async (t) => {
    const server = await checkedServer(t);
    const bytes = async (path: string) => Buffer.from(await (await server.get(path)).arrayBuffer());
    const [root, intermediate] = [await bytes('/client/crls/1'), await bytes('/client/crls/2')];
    assert.deepEqual(await bytes('/client/ca.crl'), intermediate);
    assert.notDeepEqual(root, intermediate);
    const pem = await server.get('/client/ca-crls.pem');
    assert.equal(pem.headers.get('Content-Type'), 'application/x-pem-file');
    const blocks = (await pem.text()).split(/-----(?:BEGIN|END) X509 CRL-----/).filter((_, n) => n % 2 === 1);
    assert.deepEqual(
      blocks.map((block) => Buffer.from(block, 'base64')),
      [root, intermediate],
    );
    const tag = { 'If-None-Match': pem.headers.get('ETag') ?? '' };
    assert.equal((await server.get('/client/ca-crls.pem', undefined, { headers: tag })).status, 304);
    for (const id of ['0', '3', '01', '1.crl', 'x', '9'.repeat(15), '9'.repeat(400), '-1', '%00']) {
      assert.equal((await server.get(`/client/crls/${id}`)).status, 404, id);
    }
  });
});

suite('the address of the CRL', () => {
  test(
    'is in certificates of the private CA only while a base URL is recorded',
    needs('openssl'),
    async (t) => {
      const { vault } = await checkedServer(t);
      const privateKey = await generatePrivateKey('ec256');
      const issue = async () => {
        const identifiers = [identifier('www.example.com')];
        const { leaf: certificate } = await issueFromLocalCa(vault, {
          identifiers,
          privateKey,
          lifetime: undefined,
        });
        return { certificate, privateKey };
      };
      const points = (issued: Awaited<ReturnType<typeof issue>>) =>
        extensionOf(issued, 'crlDistributionPoints').match(/URI:.*/g) ?? [];
      const without = await issue();
      assert.deepEqual(points(without), []);
      await recordCrlBaseUrl(vault, 'http://vault.example.com:8080');
      assert.deepEqual(points(await issue()), ['URI:http://vault.example.com:8080/client/crls/2']);
      await recordCrlBaseUrl(vault, undefined);
      assert.deepEqual(points(await issue()), []);
    },
  );

  test('is plain HTTP: the public URL, or port 80 if the vault serves http-01 challenges', () => {
    assert.equal(crlBaseUrl(undefined, true), undefined);
    assert.equal(crlBaseUrl('http://vault.example.com:8080', false), 'http://vault.example.com:8080');
    assert.equal(crlBaseUrl('https://vault.example.com:8443', false), undefined);
    assert.equal(crlBaseUrl('https://vault.example.com:8443', true), 'http://vault.example.com');
    assert.equal(crlBaseUrl('https://[2001:db8::1]', true), 'http://[2001:db8::1]');
  });
});
