/** The client of the vault at the server of the vault: each is a test of the other. */
import assert from 'node:assert/strict';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import {
  deactivateAccount,
  findAccount,
  registerAccount,
  rolloverKey,
  updateContact,
} from '../../../src/acme/accounts.ts';
import { AcmeError } from '../../../src/acme/acme-error.ts';
import { downloadCertificate } from '../../../src/acme/issued-certificate.ts';
import { fetchAuthorization, finalizeOrder, newOrder, waitForOrder } from '../../../src/acme/orders.ts';
import { revokeCertificate } from '../../../src/acme/revocation.ts';
import { Secret } from '../../../src/base/secret.ts';
import { generatePrivateKey, keyObject, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { certificateRequest } from '../../../src/crypto/x509/certificate-request.ts';
import { makeAcmeClient } from '../../harness/acme/server-client.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { clientOf, forever } from '../../harness/ca/scripted-acme-fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';

test('the ACME client of the vault registers, orders, rolls over its key and revokes at the ACME server of a vault', async (t) => {
  const server = await testServer(t);
  const external = await makeAcmeClient(server.vault, { domains: ['*.example.test', '192.0.2.0/24'] });
  const directoryUrl = `${server.url}/acme/local-ca/directory`;
  const client = clientOf({ directoryUrl, ca: undefined as never }, server.world);
  const privateKey = await generatePrivateKey('ec256');
  const externalAccount = { kid: external.kid, hmacKey: new Secret(external.hmacKey) };
  const account = await registerAccount(
    client,
    { privateKey, email: 'ops@example.test', externalAccount, termsAgreed: true },
    forever,
  );
  assert.equal(account.status, 'valid');
  assert.equal((await findAccount(client, privateKey, forever))?.url, account.url);
  await updateContact(client, account, 'other@example.test', forever);
  const names = ['www.example.test', '*.example.test', '192.0.2.7'].map(identifier);
  const identifiers = names.map(
    (value) => ({ type: value.startsWith('192') ? 'ip' : 'dns', value }) as const,
  );
  const order = await newOrder(client, account, { identifiers } as never, forever);
  for (const url of order.authorizations) {
    assert.equal((await fetchAuthorization(client, account, url, forever)).status, 'valid');
  }
  const key = await generatePrivateKey('ec384');
  await finalizeOrder(client, account, order, await certificateRequest(names, key), forever);
  const { certificate = '' } = await waitForOrder(client, account, order.url, ['valid'], forever);
  const wanted = { publicKey: publicKeyOf(key), identifiers, preferredChain: undefined };
  const { leaf, chain } = await downloadCertificate(client, account, certificate, wanted, forever);
  assert.equal(chain.length, 1);
  assert.deepEqual(
    new X509Certificate(leaf).publicKey.export({ type: 'spki', format: 'der' }),
    createPublicKey(keyObject(key)).export({ type: 'spki', format: 'der' }),
  );
  const newKey = await generatePrivateKey('rsa2048');
  const rolled = await rolloverKey(client, account, newKey, forever);
  await revokeCertificate(client, { account: rolled }, leaf, 4, forever);
  await revokeCertificate(client, { privateKey: key }, leaf, 1, forever);
  await deactivateAccount(client, rolled, forever);
  await assert.rejects(newOrder(client, rolled, { identifiers } as never, forever), (error) => {
    return error instanceof AcmeError && error.type === 'unauthorized';
  });
});
