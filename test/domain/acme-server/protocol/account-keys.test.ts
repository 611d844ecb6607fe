/** Keys of accounts: the example of RFC 7638, which keys are accepted, and which signatures. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { suite, test } from 'node:test';
import { toJson } from '../../../../src/base/json.ts';
import {
  AccountKeys,
  readAccountKey,
  storedAccountKey,
} from '../../../../src/domain/acme-server/protocol/account-keys.ts';
import { AcmeProblem } from '../../../../src/domain/acme-server/protocol/acme-problem.ts';
import { readMessage } from '../../../../src/domain/acme-server/protocol/signed-messages.ts';
import { newKey, sign } from '../../../harness/acme/server-client.ts';

/** RFC 7638 §3.1. */
const exampleModulus =
  '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw';

const ec = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};
const short = { x: 'AAAA' };

const refused: Readonly<Record<string, readonly [jwk: unknown, type: string]>> = {
  'a string instead of an object': ['key', 'malformed'],
  null: [null, 'malformed'],
  'a list': [[ec], 'malformed'],
  'a missing kty': [{ ...ec, kty: undefined }, 'malformed'],
  'a private key': [{ ...ec, d: 'AAAA' }, 'malformed'],
  'a symmetric key': [{ kty: 'oct', k: 'AAAA' }, 'malformed'],
  'an unknown kty': [{ kty: 'PQ' }, 'badPublicKey'],
  'the curve P-521': [{ ...ec, crv: 'P-521' }, 'badPublicKey'],
  'a coordinate that is too short': [{ ...ec, ...short }, 'badPublicKey'],
  'a coordinate that is not base64url': [{ ...ec, x: `${ec.x}=` }, 'badPublicKey'],
  'a coordinate with bits after the last byte': [{ ...ec, x: `${ec.x.slice(0, -1)}V` }, 'badPublicKey'],
  'a missing coordinate': [{ ...ec, y: undefined }, 'badPublicKey'],
  'the curve X25519': [{ kty: 'OKP', crv: 'X25519', x: ec.x }, 'badPublicKey'],
  'RSA with 1024 bits': [{ kty: 'RSA', e: 'AQAB', n: exampleModulus.slice(0, 171) }, 'badPublicKey'],
  'RSA with 8192 bits': [
    { kty: 'RSA', e: 'AQAB', n: exampleModulus.slice(0, 340).repeat(4) },
    'badPublicKey',
  ],
  'RSA with the exponent 3': [{ kty: 'RSA', e: 'Aw', n: exampleModulus }, 'badPublicKey'],
  'RSA with a huge exponent': [{ kty: 'RSA', e: exampleModulus, n: exampleModulus }, 'badPublicKey'],
};

function problemOf(work: () => unknown): AcmeProblem {
  try {
    work();
  } catch (error) {
    assert(error instanceof AcmeProblem, String(error));
    return error;
  }
  assert.fail('nothing was thrown');
}

suite('an account key', () => {
  test('has the thumbprint of the RFC 7638 example and ignores additional JWK members', () => {
    const jwk = { kty: 'RSA', n: exampleModulus, e: 'AQAB', alg: 'RS256', kid: '2011-04-29' };
    const key = readAccountKey(jwk);
    assert.equal(key.thumbprint, 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs');
    assert.deepEqual(storedAccountKey({ jwk: toJson(key.jwk), thumbprint: key.thumbprint }), key);
  });

  for (const [what, [jwk, type]] of Object.entries(refused)) {
    test(`is rejected for ${what}`, () => {
      assert.equal(problemOf(() => readAccountKey(jwk)).type, type);
    });
  }

  test('verifies its own signatures and rejects forged and modified messages', async () => {
    const keys = new AccountKeys();
    for (const alg of ['ES256', 'ES384', 'RS256', 'EdDSA'] as const) {
      const own = await newKey(alg);
      const other = await newKey(alg);
      const header = { alg, url: 'https://vault.test/x', jwk: own.jwk };
      const message = readMessage(await sign({ a: 1 }, header, own.privateKey));
      const key = readAccountKey(own.jwk);
      assert.equal(key.alg, alg);
      await keys.requireSignature(message, key);
      const forged = readMessage(await sign({ a: 1 }, header, other.privateKey));
      await assert.rejects(keys.requireSignature(forged, key), { type: 'malformed' });
      const changed = {
        ...message,
        jws: { ...message.jws, payload: Buffer.from('{}').toString('base64url') },
      };
      await assert.rejects(keys.requireSignature(changed, key), { type: 'malformed' });
    }
  });

  test('rejects the algorithm of another key type and lists the accepted algorithms', async () => {
    const { jwk } = await newKey('ES256');
    const { privateKey } = await newKey('ES384');
    const header = { alg: 'ES384', url: 'https://vault.test/x', jwk };
    const message = readMessage(await sign({}, header, privateKey));
    await assert.rejects(new AccountKeys().requireSignature(message, readAccountKey(jwk)), {
      type: 'badSignatureAlgorithm',
      algorithms: ['ES256', 'ES384', 'RS256', 'EdDSA'],
    });
  });

  test('is rejected if its point is not on its curve', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = { ...ec, y: Buffer.alloc(32, 1).toString('base64url') };
    const message = readMessage(
      await sign({}, { alg: 'ES256', url: 'https://vault.test/x', jwk }, privateKey),
    );
    await assert.rejects(new AccountKeys().requireSignature(message, readAccountKey(jwk)), {
      type: 'badPublicKey',
    });
  });
});
