/** Signature Version 4 against the examples that AWS published. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sigV4Headers } from '../../src/net/aws-signature.ts';

const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const suite = { region: 'us-east-1', service: 'service' };
const now = Date.parse('2015-08-30T12:36:00Z');
const host = 'https://example.amazonaws.com';
const unreserved = '-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const form = { 'Content-Type': 'application/x-www-form-urlencoded' };

type Case = Parameters<typeof sigV4Headers>[0] & { readonly signed: string; readonly signature: string };

/** From the Signature Version 4 test suite, and the example of the IAM User Guide. */
const vectors: Readonly<Record<string, Case>> = {
  'get-vanilla': {
    method: 'GET',
    url: `${host}/`,
    signed: 'host;x-amz-date',
    signature: '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  },
  'get-vanilla-query-order-key-case': {
    method: 'GET',
    url: `${host}/?Param2=value2&Param1=value1`,
    signed: 'host;x-amz-date',
    signature: 'b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500',
  },
  'get-vanilla-query-unreserved': {
    method: 'GET',
    url: `${host}/?${unreserved}=${unreserved}`,
    signed: 'host;x-amz-date',
    signature: '9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197',
  },
  'post-vanilla': {
    method: 'POST',
    url: `${host}/`,
    signed: 'host;x-amz-date',
    signature: '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b',
  },
  'post-x-www-form-urlencoded': {
    method: 'POST',
    url: `${host}/`,
    headers: form,
    body: 'Param1=value1',
    signed: 'content-type;host;x-amz-date',
    signature: 'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  },
};

for (const [title, { signed, signature, ...request }] of Object.entries(vectors)) {
  test(`sigV4Headers matches the AWS test suite: ${title}`, async () => {
    const headers = await sigV4Headers(request, keys, suite, now);
    assert.deepEqual(headers, {
      'X-Amz-Date': '20150830T123600Z',
      Authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${signed}, Signature=${signature}`,
    });
  });
}

test('sigV4Headers matches the ListUsers example of the IAM User Guide', async () => {
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-8' };
  const url = 'https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08';
  const { Authorization } = await sigV4Headers(
    { method: 'GET', url, headers },
    keys,
    { region: 'us-east-1', service: 'iam' },
    now,
  );
  const expected = '5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7';
  assert.equal(Authorization?.split('Signature=')[1], expected);
});

test('a session token is sent and signed', async () => {
  const credentials = { ...keys, sessionToken: 'token+/=' };
  const headers = await sigV4Headers({ method: 'GET', url: `${host}/` }, credentials, suite, now);
  assert.equal(headers['X-Amz-Security-Token'], 'token+/=');
  assert.match(headers.Authorization ?? '', /SignedHeaders=host;x-amz-date;x-amz-security-token,/);
});

test('characters that RFC 3986 reserves are encoded in the query, and the port is signed', async () => {
  const sign = async (url: string) =>
    (await sigV4Headers({ method: 'GET', url }, keys, suite, now)).Authorization;
  assert.equal(await sign(`${host}/?name=*.example.com`), await sign(`${host}/?name=%2A.example.com`));
  assert.notEqual(await sign(`${host}/`), await sign(`${host}:8443/`));
});
