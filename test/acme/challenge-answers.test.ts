/** What is published to prove control, by the examples of the RFCs where there are any. */
import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { test } from 'node:test';
import { dns01Value, dnsPersistValue, keyAuthorization } from '../../src/acme/challenge-answers.ts';
import { Secret } from '../../src/base/secret.ts';
import { isAcmeError } from '../harness/ca/scripted-acme-fixtures.ts';

/** RFC 7515, Appendix A.3; its thumbprint as openssl digests the text of RFC 7638 §3. */
const jwk = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
};
const key = new Secret(
  createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'der' }),
);
const thumbprint = 'oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U';

test('a key authorization is the token and the thumbprint of the key', async () => {
  const token = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA';
  assert.equal(await keyAuthorization(token, key), `${token}.${thumbprint}`);
});

test('keyAuthorization rejects a token that is empty, too long or not base64url', async () => {
  for (const token of ['', '../../etc/passwd', 'a b', 'a/b', 'a.b', 'a=', 'ä', 'a\n', 'x'.repeat(513)]) {
    await assert.rejects(
      keyAuthorization(token, key),
      isAcmeError('protocol', /token that is not base64url/),
    );
  }
});

test('the dns-01 TXT value is the base64url SHA-256 digest of the key authorization', () => {
  // printf abc | openssl dgst -sha256 -binary | basenc --base64url
  assert.equal(dns01Value('abc'), 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0');
});

test('the dns-persist-01 TXT value contains the issuer, the account URI and the wildcard policy', () => {
  const uri = 'https://ca.example/acct/123';
  assert.equal(dnsPersistValue('ca.example', uri, false), `ca.example; accounturi=${uri}`);
  assert.equal(dnsPersistValue('ca.example', uri, true), `ca.example; accounturi=${uri}; policy=wildcard`);
});

test('dnsPersistValue rejects empty values and values that would alter the TXT record', () => {
  const uri = 'https://ca.example/acct/123';
  for (const [domain, account] of [
    ['ca.example; policy=wildcard', uri],
    ['ca.example', `${uri}; policy=wildcard`],
    ['ca.example', 'https://ca.example/a b'],
    ['ca.example', ''],
    ['', uri],
    ['ca.example\n', uri],
  ] as const) {
    assert.throws(
      () => dnsPersistValue(domain, account, false),
      isAcmeError('protocol', /do not fit into a TXT record/),
    );
  }
});
