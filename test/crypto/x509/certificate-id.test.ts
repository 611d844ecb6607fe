/** Serial numbers and issuers' keys, byte by byte, and bytes that are no certificate. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { serialAndAuthorityKeyId } from '../../../src/crypto/x509/certificate-id.ts';
import { extensionOf, makeChain } from '../../harness/ca/private-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';

test('serial number and authority key ID equal those that OpenSSL prints', needs('openssl'), async () => {
  for (const keyType of ['ec256', 'rsa2048'] as const) {
    const { leaf, intermediate } = await makeChain({ keyType });
    for (const one of [leaf, intermediate]) {
      const id = serialAndAuthorityKeyId(one.certificate);
      assert.equal(
        id?.serial.toString('hex').toUpperCase(),
        new X509Certificate(one.certificate).serialNumber,
      );
      const [, shown = ''] = extensionOf(one, 'authorityKeyIdentifier').split('\n');
      const hex = shown.replace('keyid:', '').replaceAll(':', '').trim();
      assert.equal(id?.authorityKeyId.toString('hex').toUpperCase(), hex);
    }
  }
});

test('serialAndAuthorityKeyId does not throw for a truncated or changed certificate', async () => {
  const { leaf } = await makeChain();
  for (let size = 0; size < leaf.certificate.length; size++) {
    assert.equal(serialAndAuthorityKeyId(leaf.certificate.subarray(0, size)), undefined);
    const changed = Buffer.from(leaf.certificate);
    changed[size] = 0xff;
    serialAndAuthorityKeyId(changed);
  }
});
