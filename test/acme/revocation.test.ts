/** Who may revoke a certificate, and what comes of it. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import type { AcmeError } from '../../src/acme/acme-error.ts';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import { revokeCertificate } from '../../src/acme/revocation.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { problem } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  forever,
  isAcmeError,
  issuedOrder,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

async function issued(t: Parameters<typeof registered>[0]) {
  const parts = await registered(t);
  const { url, wanted, privateKey } = await issuedOrder(parts.client, parts.account, 'example.com');
  const { leaf } = await downloadCertificate(parts.client, parts.account, url, wanted, forever);
  return { ...parts, leaf, privateKey, serial: new X509Certificate(leaf).serialNumber };
}

test('the account that ordered a certificate can revoke it, and revoking it again succeeds', async (t) => {
  const { ca, client, account, leaf, serial } = await issued(t);
  await revokeCertificate(client, { account }, leaf, 4, forever);
  await revokeCertificate(client, { account }, leaf, 1, forever);
  assert.equal(ca.requests.at(-1)?.status, 400);
  assert.deepEqual([...ca.state.revoked], [[serial, 4]]);
});

test("the certificate's own key revokes it without an account", async (t) => {
  const { ca, leaf, serial, privateKey } = await issued(t);
  await revokeCertificate(clientOf(ca), { privateKey }, leaf, 1, forever);
  assert.deepEqual([...ca.state.revoked], [[serial, 1]]);
  assert.equal(ca.requests.at(-1)?.signed?.header.kid, undefined);
});

test('revocation with an unrelated key is rejected as unauthorized', async (t) => {
  const { ca, client, leaf } = await issued(t);
  const privateKey = await generatePrivateKey('ec256');
  const refused = revokeCertificate(client, { privateKey }, leaf, 0, forever);
  await assert.rejects(refused, (error: AcmeError) => error.type === 'unauthorized');
  assert.equal(ca.state.revoked.size, 0);
});

test("a rejected revocation reason is reported with the CA's error message", async (t) => {
  const { ca, client, account, leaf } = await issued(t);
  ca.override('revokeCert', problem('badRevocationReason', 'reason 8 is not for you'));
  const refused = revokeCertificate(client, { account }, leaf, 8, forever);
  await assert.rejects(refused, isAcmeError('problem', /^reason 8 is not for you$/));
});

test('revokeCertificate fails with a clear error if the CA does not support revocation', async (t) => {
  const { ca, account, leaf } = await issued(t);
  ca.override('directory', async (_, usual) => {
    const { revokeCert: _gone, ...body } = (await usual()).body as Record<string, unknown>;
    return { body };
  });
  const refused = revokeCertificate(clientOf(ca), { account }, leaf, 0, forever);
  await assert.rejects(refused, isAcmeError('protocol', /does not support revocation/));
});
