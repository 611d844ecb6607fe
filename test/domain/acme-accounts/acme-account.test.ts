/**
 * Accounts as the engine uses them: registered once, shared, found again after anything, and never in clear anywhere.
 */
import assert from 'node:assert/strict';
import { createPrivateKey } from 'node:crypto';
import { test } from 'node:test';
import { Secret } from '../../../src/base/secret.ts';
import { findAcmeAccount, listAcmeAccounts } from '../../../src/db/tables/issuance/acme-accounts.ts';
import { ownAccount } from '../../../src/domain/acme-accounts/acme-account.ts';
import { closeAccount } from '../../../src/domain/acme-accounts/acme-account-changes.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { createIssuerInput, parseInput } from '../../../src/domain/inputs.ts';
import { addIssuer, updateIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import { requireVersion, versionPrivateKey } from '../../../src/domain/versions/versions.ts';
import { problem, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { issues, issuesAnother } from '../../harness/issuance/engine-outcomes.ts';
import { challengeRows, countOf, type Engine, engine, tryWork } from '../../harness/issuance/engine-vault.ts';
import { forever, makeCertificate, rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { storedValues } from './stored-values.ts';

const accepted = { acceptsTerms: true } as const;

async function addAnother({ vault, ca }: Engine, name: string, email?: string): Promise<void> {
  const input = parseInput(createIssuerInput, {
    name,
    directory_url: ca.directoryUrl,
    ...(email && { email }),
  });
  await addIssuer(vault, localCli, input, accepted, forever);
}

test('twenty renewals that begin together register one account', async (t) => {
  const { vault, ca } = await engine(t, { certificate: null });
  for (let n = 1; n <= 20; n += 1) await makeCertificate(vault, `www${n}`, { issuer: 'ca' });
  const ended = await Promise.all(Array.from({ length: 20 }, () => tryWork(vault)));
  assert.deepEqual(new Set(ended.map((row) => row?.status)), new Set(['succeeded']));
  assert.equal(countOf(ca, 'newAccount'), 1);
  assert.equal(ca.state.accounts.size, 1);
});

test('issuers with the same directory and contact share an account; another contact has its own', async (t) => {
  const opened = await engine(t);
  const { vault, ca } = opened;
  await addAnother(opened, 'same');
  await addAnother(opened, 'other', 'ops@example.test');
  await issues(vault);
  for (const issuer of ['same', 'other']) {
    await makeCertificate(vault, issuer, { issuer });
    await issues(vault);
  }
  const accounts = await listAcmeAccounts(vault.db.reader);
  assert.deepEqual(
    accounts.map(({ issuers, email, status }) => ({ issuers, email, status })),
    [
      { issuers: ['ca', 'same'], email: null, status: 'valid' },
      { issuers: ['other'], email: 'ops@example.test', status: 'valid' },
    ],
  );
  assert.equal(ca.state.accounts.size, 2);
});

test('an issuer that gets another contact leaves the account that it shared', async (t) => {
  const opened = await engine(t);
  const { vault } = opened;
  await addAnother(opened, 'same');
  await issues(vault);
  await makeCertificate(vault, 'same', { issuer: 'same' });
  await issues(vault);
  await updateIssuer(vault, localCli, 'same', { email: 'ops@example.test' }, accepted, forever);
  await issuesAnother(vault);
  await makeCertificate(vault, 'again', { issuer: 'same' });
  await issues(vault);
  const accounts = await listAcmeAccounts(vault.db.reader);
  assert.deepEqual(
    accounts.map(({ issuers, email }) => [issuers, email]),
    [
      [['ca'], null],
      [['same'], 'ops@example.test'],
    ],
  );
});

test('an issuer that gets another directory leaves its account behind and registers at the new one', async (t) => {
  const opened = await engine(t);
  const { vault, world } = opened;
  await issues(vault);
  const elsewhere = await scriptedAcme(t, { now: world.now });
  const changes = { directory_url: elsewhere.directoryUrl };
  await updateIssuer(vault, localCli, 'ca', changes, accepted, forever);
  await issuesAnother(vault);
  const accounts = await listAcmeAccounts(vault.db.reader);
  assert.deepEqual(
    accounts.map(({ issuers, status, directory_url }) => [issuers, status, directory_url]),
    [
      [[], 'valid', opened.ca.directoryUrl],
      [['ca'], 'valid', elsewhere.directoryUrl],
    ],
  );
  // It never knew the certificate that is replaced.
  assert.equal([...elsewhere.state.orders.values()][0]?.replaces, undefined);
});

test('a changed contact is sent to the CA once, at the next renewal', async (t) => {
  const opened = await engine(t);
  const { vault, ca } = opened;
  await issues(vault);
  await updateIssuer(vault, localCli, 'ca', { email: 'new@example.test' }, accepted, forever);
  assert.equal(countOf(ca, 'account'), 0);
  await issuesAnother(vault);
  await issuesAnother(vault);
  assert.equal(countOf(ca, 'account'), 1);
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ contact }) => contact),
    [['mailto:new@example.test']],
  );
});

test('an account that the CA has forgotten is replaced within the same attempt, even in the middle of an order', async (t) => {
  for (const kind of ['newOrder', 'authorization', 'finalize'] as const) {
    const opened = await engine(t);
    const { vault, ca } = opened;
    ca.override(kind, (_, usual) => {
      ca.state.accounts.clear();
      ca.state.authorizations.clear();
      ca.state.orders.clear();
      return usual();
    });
    await issues(vault);
    const accounts = await listAcmeAccounts(vault.db.reader);
    assert.deepEqual(
      accounts.map(({ issuers, status }) => [issuers, status]),
      [
        [[], 'gone'],
        [['ca'], 'valid'],
      ],
    );
    assert.equal(ca.state.accounts.size, 1);
    assert.deepEqual(await challengeRows(vault), []);
  }
});

test('a contact that the CA rejects does not block the renewal and is retried at the next one', async (t) => {
  const opened = await engine(t);
  const { vault, ca, log } = opened;
  await issues(vault);
  await updateIssuer(vault, localCli, 'ca', { email: 'new@example.test' }, accepted, forever);
  ca.override('account', problem('invalidContact', 'no such mailbox'));
  await issuesAnother(vault);
  assert(
    log.lines.some(
      (line) => line.includes('no such mailbox') && line.includes('retrying with the next renewal'),
    ),
  );
  await issuesAnother(vault);
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ contact }) => contact),
    [['mailto:new@example.test']],
  );
});

test('an account deactivated by the vault is replaced at the next order', async (t) => {
  const opened = await engine(t);
  const { vault, ca } = opened;
  await issues(vault);
  await closeAccount(vault, localCli, '1', forever);
  await issuesAnother(vault);
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ status }) => status),
    ['deactivated', 'valid'],
  );
  assert.equal((await findAcmeAccount(vault.db.reader, 1))?.status, 'deactivated');
});

test('an account deactivated at the CA is replaced within the same attempt', async (t) => {
  const opened = await engine(t);
  const { vault, ca } = opened;
  await issues(vault);
  for (const account of ca.state.accounts.values()) account.status = 'deactivated';
  await issuesAnother(vault);
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ status }) => status),
    ['deactivated', 'valid'],
  );
  assert.equal((await findAcmeAccount(vault.db.reader, 1))?.status, 'deactivated');
});

test('account keys, EAB keys and private keys are in plaintext neither in the log nor in the database', async (t) => {
  const eabKey = Buffer.from('a key of thirty-two bytes length');
  const { vault, ca, log, dataDir } = await engine(t, { certificate: null });
  const strict = await scriptedAcme(t, { externalAccounts: { customer: eabKey }, now: vault.world.now });
  const input = parseInput(createIssuerInput, {
    ...{ name: 'strict', directory_url: strict.directoryUrl, eab_kid: 'customer' },
  });
  await addIssuer(vault, localCli, input, { ...accepted, eabKey: new Secret(eabKey) }, forever);
  await makeCertificate(vault, 'www', { issuer: 'strict' });
  await issues(vault);
  assert.equal([...strict.state.accounts.values()][0]?.externalAccount, 'customer');
  assert.equal(ca.state.accounts.size, 0);

  const account = await findAcmeAccount(vault.db.reader, 1);
  assert(account);
  const version = await requireVersion(vault.db.reader, await rowOf(vault, 'www'), undefined);
  const keys = [ownAccount(vault, account).privateKey, versionPrivateKey(vault, version)];
  const numbers = keys.map((key) => {
    const { d = '' } = createPrivateKey({ key: key.expose(), format: 'der', type: 'pkcs8' }).export({
      format: 'jwk',
    });
    return Buffer.from(d, 'base64url');
  });
  const texts = [...storedValues(dataDir), Buffer.from(log.lines.join('\n'))];
  for (const secret of [eabKey, ...numbers]) {
    assert(secret.length >= 32);
    for (const form of [
      secret,
      secret.toString('hex'),
      secret.toString('base64url'),
      secret.toString('base64'),
    ]) {
      for (const text of texts) assert(!text.includes(form));
    }
  }
});
