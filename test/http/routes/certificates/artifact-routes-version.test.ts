/**
 * `?version=` on downloads: a client can fetch a matching pair, also a past one, and nothing else passes as a query.
 */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { makeCertificate, makeKey, renewCertificate } from '../../../harness/http/fixtures.ts';

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

async function refusal(server: CheckedServer, path: string, key: string) {
  const response = await server.get(path, key);
  return `${response.status} ${await codeOf(response)}`;
}

suite('?version=', () => {
  test('pins an artifact to a version, so that a pair fits also after a renewal', async (t) => {
    const { server, raw, body } = await prepared(t);
    const before = await body(`${www}/certificate.crt`);
    await renewCertificate(server.vault, 'www');
    for (const [version, current] of [
      ['1', false],
      ['2', true],
    ] as const) {
      const response = await server.get(`${www}/certificate.crt?version=${version}`, raw);
      assert.equal(response.headers.get('Certificate-Version'), version);
      const certificate = await response.text();
      assert.equal(certificate === before, !current);
      const key = createPrivateKey(await body(`${www}/private-key.pem?version=${version}`));
      assert(new X509Certificate(certificate).checkPrivateKey(key));
    }
    assert.equal((await server.get(`${www}/private.key`, raw)).headers.get('Certificate-Version'), '2');
  });

  test('returns 404 for an unknown version and 400 for an invalid query', async (t) => {
    const { server, raw } = await prepared(t);
    for (const text of ['2', '999', '999999999'])
      assert.equal(await refusal(server, `${www}/private.key?version=${text}`, raw), '404 version_not_found');
    const queries = [
      'version=0',
      'version=-1',
      'version=abc',
      'version=1.0',
      'version=',
      'version=1e0',
      'version=0x1',
    ];
    queries.push(
      'version=1&version=1',
      'version=%201',
      'version=+1',
      'version=99999999999999999999',
      'Version=1',
    );
    queries.push('v=1', 'version=1&x=', 'version[]=1', '__proto__=1', 'constructor=1', '%', '=');
    for (const query of queries)
      assert.equal(await refusal(server, `${www}/private.key?${query}`, raw), '400 invalid_request', query);
    assert.equal(
      (await server.get(`${www}/private.key?`, raw)).status,
      200,
      'an empty query asks for nothing',
    );
  });

  test('is reported as the invalid parameter in the error', async (t) => {
    const { server, raw } = await prepared(t);
    const response = await server.get(`${www}/private.key?version=abc`, raw);
    const { errors } = (await response.json()) as { errors: { path: string }[] };
    assert.deepEqual(
      errors.map(({ path }) => path),
      ['version'],
    );
  });
});
