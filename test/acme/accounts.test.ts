/** Accounts: made once, found again, bound, changed, and ended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  deactivateAccount,
  findAccount,
  registerAccount,
  rolloverKey,
  updateContact,
} from '../../src/acme/accounts.ts';
import type { AcmeError } from '../../src/acme/acme-error.ts';
import { newOrder } from '../../src/acme/orders.ts';
import { Secret } from '../../src/base/secret.ts';
import { generatePrivateKey } from '../../src/crypto/key-pair.ts';
import { problem, scriptedAcme } from '../harness/ca/scripted-acme.ts';
import {
  clientOf,
  dnsNames,
  forever,
  hmacKey,
  isAcmeError,
  registered,
} from '../harness/ca/scripted-acme-fixtures.ts';

const plain = { email: undefined, externalAccount: undefined, termsAgreed: true };
const ofType = (type: string) => (error: AcmeError) => isAcmeError('problem')(error) && error.type === type;

test('registering the same key twice returns the same account', async (t) => {
  const ca = await scriptedAcme(t);
  const privateKey = await generatePrivateKey('ec256');
  const wanted = { ...plain, privateKey, email: 'ops@example.com' };
  const first = await registerAccount(clientOf(ca), wanted, forever);
  const second = await registerAccount(clientOf(ca), wanted, forever);
  assert.deepEqual(second, first);
  assert.equal(first.status, 'valid');
  assert.deepEqual(
    ca.requests.filter(({ kind }) => kind === 'newAccount').map(({ status }) => status),
    [201, 200],
  );
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ contact }) => contact),
    [['mailto:ops@example.com']],
  );
});

test('findAccount returns the account of a key and creates no account', async (t) => {
  const { ca, client, account } = await registered(t);
  assert.equal((await findAccount(client, account.privateKey, forever))?.url, account.url);
  assert.equal(await findAccount(client, await generatePrivateKey('ec256'), forever), undefined);
  assert.equal(ca.state.accounts.size, 1);
});

test('registerAccount is rejected unless the terms of service are agreed to', async (t) => {
  const ca = await scriptedAcme(t, { termsOfService: 'https://ca.test/terms' });
  const privateKey = await generatePrivateKey('ec256');
  const refused = registerAccount(clientOf(ca), { ...plain, privateKey, termsAgreed: false }, forever);
  await assert.rejects(
    refused,
    isAcmeError('problem', /the terms must be agreed to Visit https:\/\/ca\.test\/terms$/),
  );
  await registerAccount(clientOf(ca), { ...plain, privateKey }, forever);
});

test('external account binding succeeds only with the correct key ID and HMAC key', async (t) => {
  const ca = await scriptedAcme(t, {
    externalAccounts: { 'kid-1': hmacKey().expose(), short: Buffer.from('0123456789abcdef') },
  });
  const client = clientOf(ca);
  const privateKey = await generatePrivateKey('ec384');
  const bind = (kid: string, key: Secret) =>
    registerAccount(client, { ...plain, privateKey, externalAccount: { kid, hmacKey: key } }, forever);
  await assert.rejects(
    registerAccount(client, { ...plain, privateKey }, forever),
    ofType('externalAccountRequired'),
  );
  await assert.rejects(bind('kid-1', hmacKey('another key, of the same length.')), ofType('unauthorized'));
  await assert.rejects(bind('kid-2', hmacKey()), ofType('unauthorized'));
  const { url } = await bind('kid-1', hmacKey());
  assert.equal(ca.state.accounts.get(url)?.externalAccount, 'kid-1');
  const other = { ...plain, privateKey: await generatePrivateKey('ec256') };
  const externalAccount = { kid: 'short', hmacKey: new Secret(Buffer.from('0123456789abcdef')) };
  await registerAccount(client, { ...other, externalAccount }, forever);
});

test('updateContact changes and removes the contact', async (t) => {
  const { ca, client, account } = await registered(t);
  const contact = () => ca.state.accounts.get(account.url)?.contact;
  await updateContact(client, account, 'new@example.com', forever);
  assert.deepEqual(contact(), ['mailto:new@example.com']);
  await updateContact(client, account, undefined, forever);
  assert.deepEqual(contact(), []);
});

test('after a key rollover only the new key works', async (t) => {
  const { client, account } = await registered(t);
  const newKey = await generatePrivateKey('ec384');
  const changed = await rolloverKey(client, account, newKey, forever);
  assert.equal(changed.url, account.url);
  assert.equal(changed.privateKey, newKey);
  const request = { identifiers: dnsNames('example.com') };
  await newOrder(client, changed, request, forever);
  await assert.rejects(newOrder(client, account, request, forever), ofType('unauthorized'));
});

test('a key rollover that the CA completed before a crash succeeds when repeated', async (t) => {
  const { ca, client, account } = await registered(t);
  const newKey = await generatePrivateKey('ec256');
  ca.override('keyChange', async (_, usual) => ({ ...(await usual()), cutAfter: 0 }));
  await assert.rejects(rolloverKey(client, account, newKey, forever), isAcmeError('network'));
  assert.equal((await rolloverKey(client, account, newKey, forever)).url, account.url);
  await newOrder(client, { ...account, privateKey: newKey }, { identifiers: dnsNames('a.test') }, forever);
});

test('rolloverKey rejects a key that belongs to another account', async (t) => {
  const { client, account } = await registered(t);
  const other = await generatePrivateKey('ec256');
  await registerAccount(client, { ...plain, privateKey: other }, forever);
  await assert.rejects(rolloverKey(client, account, other, forever), ofType('conflict'));
  assert.equal((await findAccount(client, account.privateKey, forever))?.url, account.url);
});

test('a rejected key rollover reports its reason even if the lookup of the new key fails', async (t) => {
  const { ca, client, account } = await registered(t);
  ca.override('keyChange', problem('badPublicKey', 'too weak'));
  ca.override('newAccount', problem('rateLimited', 'slow down'));
  const newKey = await generatePrivateKey('ec256');
  await assert.rejects(rolloverKey(client, account, newKey, forever), isAcmeError('problem', /^too weak$/));
});

test('rolloverKey fails with a clear error if the CA does not support key rollover', async (t) => {
  const { ca, account } = await registered(t);
  ca.override('directory', async (_, usual) => {
    const { keyChange: _gone, ...body } = (await usual()).body as Record<string, unknown>;
    return { body };
  });
  const changing = rolloverKey(clientOf(ca), account, account.privateKey, forever);
  await assert.rejects(changing, isAcmeError('protocol', /does not support account key rollover/));
});

test('a deactivated account stays deactivated', async (t) => {
  const { client, account } = await registered(t);
  await deactivateAccount(client, account, forever);
  await assert.rejects(
    newOrder(client, account, { identifiers: dnsNames('a.test') }, forever),
    ofType('unauthorized'),
  );
  await assert.rejects(findAccount(client, account.privateKey, forever), ofType('unauthorized'));
});

test('no request contains a private key', async (t) => {
  const { ca, client, account } = await registered(t);
  await rolloverKey(client, account, await generatePrivateKey('rsa2048'), forever);
  for (const { signed } of ca.requests) assert(!JSON.stringify(signed ?? {}).includes('"d":'));
});
