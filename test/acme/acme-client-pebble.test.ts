/** The client against an independent CA: Pebble, which rejects a fifth of the nonces and is strict. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { findAccount, registerAccount, rolloverKey, updateContact } from '../../src/acme/accounts.ts';
import type { AcmeError } from '../../src/acme/acme-error.ts';
import { downloadCertificate } from '../../src/acme/issued-certificate.ts';
import { newOrder } from '../../src/acme/orders.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../src/acme/renewal-info.ts';
import { revokeCertificate } from '../../src/acme/revocation.ts';
import { type KeyType, keyTypes } from '../../src/base/key-type.ts';
import { Secret } from '../../src/base/secret.ts';
import { realWorld } from '../../src/base/world.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import { needsPebble, pebble } from '../harness/ca/pebble.ts';
import {
  clientOf,
  dnsNames,
  forever,
  isAcmeError,
  issuedOrder,
} from '../harness/ca/scripted-acme-fixtures.ts';

const plain = { email: undefined, externalAccount: undefined, termsAgreed: true };

test(
  'a certificate from Pebble is downloaded with the preferred chain and revoked by its key and by the account',
  needsPebble(),
  async (t) => {
    const { directoryUrl, caPem, root } = await pebble(t, { alternateRoots: 2, alwaysValid: true });
    const client = clientOf({ directoryUrl, ca: caPem }, realWorld);
    const account = await registerAccount(
      client,
      { ...plain, privateKey: await generatePrivateKey('ec256') },
      forever,
    );
    const names = ['example.test', '*.example.test', '127.0.0.1'];
    const { url, wanted, privateKey } = await issuedOrder(client, account, ...names);
    const { subject } = new X509Certificate(await root(2));
    const preferredChain = subject?.replace(/^CN=/, '') ?? '';
    const { leaf, chain } = await downloadCertificate(
      client,
      account,
      url,
      { ...wanted, preferredChain },
      forever,
    );
    assert.equal(new X509Certificate(chain.at(-1) ?? '').issuer, subject);
    await revokeCertificate(client, { privateKey }, leaf, 1, forever);
    await revokeCertificate(client, { account }, leaf, 1, forever);
  },
);

test(
  'Pebble accounts of each supported key type can be found, updated and rolled over to a new key',
  needsPebble(),
  async (t) => {
    const { directoryUrl, caPem } = await pebble(t);
    const client = clientOf({ directoryUrl, ca: caPem }, realWorld);
    const types = keyTypes.filter((type): type is KeyType => !['ed25519', 'rsa4096'].includes(type));
    for (const type of types) {
      const privateKey = await generatePrivateKey(type);
      const account = await registerAccount(
        client,
        { ...plain, privateKey, email: 'ops@example.com' },
        forever,
      );
      assert.equal((await findAccount(client, privateKey, forever))?.url, account.url);
      await updateContact(client, account, undefined, forever);
      const newKey = await generatePrivateKey('ec256');
      const changed = await rolloverKey(client, account, newKey, forever);
      assert.deepEqual(await rolloverKey(client, account, newKey, forever), changed);
      await newOrder(client, changed, { identifiers: dnsNames('example.test') }, forever);
      assert.equal(await findAccount(client, privateKey, forever), undefined);
    }
  },
);

test(
  'Pebble returns a renewal window, accepts `replaces` once, and rejects an unknown profile',
  needsPebble('ari'),
  async (t) => {
    const { directoryUrl, caPem, setRenewalInfo } = await pebble(t, { alwaysValid: true });
    const client = clientOf({ directoryUrl, ca: caPem }, realWorld);
    const account = await registerAccount(
      client,
      { ...plain, privateKey: await generatePrivateKey('ec256') },
      forever,
    );
    const { url, wanted } = await issuedOrder(client, account, 'example.test');
    const { leaf } = await downloadCertificate(client, account, url, wanted, forever);
    const id = renewalInfoId(leaf) ?? '';
    const window = { start: new Date('2026-01-01T00:00:00Z'), end: new Date('2026-01-02T00:00:00Z') };
    await setRenewalInfo(encodePem('CERTIFICATE', leaf), window);
    const info = await fetchRenewalInfo(client, id, forever);
    assert.equal(info?.windowStart, window.start.getTime());
    assert.equal(info?.windowEnd, window.end.getTime());
    const request = { identifiers: dnsNames('example.test'), replaces: id };
    const { authorizations } = await newOrder(client, account, request, forever);
    assert.equal(authorizations.length, 1);
    const other = { identifiers: dnsNames('other.test'), replaces: id };
    assert.equal((await newOrder(client, account, other, forever)).replaces, undefined);
    const odd = newOrder(client, account, { ...request, profile: 'unheard-of' }, forever);
    await assert.rejects(odd, (error: AcmeError) => /unheard-of/.test(error.message));
  },
);

test(
  'Pebble accepts an external account binding only with the correct HMAC key',
  needsPebble(),
  async (t) => {
    const right = Buffer.from('a key of thirty-two bytes length');
    const { directoryUrl, caPem } = await pebble(t, { eab: { 'kid-1': right.toString('base64url') } });
    const client = clientOf({ directoryUrl, ca: caPem }, realWorld);
    const bind = async (hmacKey: Secret) => {
      const privateKey = await generatePrivateKey('ec256');
      const externalAccount = { kid: 'kid-1', hmacKey };
      return registerAccount(client, { ...plain, privateKey, externalAccount }, forever);
    };
    assert.equal((await client.directory(forever)).externalAccountRequired, true);
    await assert.rejects(bind(new Secret(Buffer.alloc(32))), isAcmeError('problem'));
    assert.equal((await bind(new Secret(right))).status, 'valid');
  },
);
