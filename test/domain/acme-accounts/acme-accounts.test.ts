/** ACME accounts: which are current, and that what goes leaves the history of certificates as it was. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import {
  acmeAccountView,
  deleteAccount,
  listAccounts,
} from '../../../src/domain/acme-accounts/acme-accounts.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { outside, refuse } from '../../harness/database/outside-database.ts';
import { makeAccount, makeIssuer } from '../../harness/http/acme-fixtures.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

test('an account is current while issuers use it, and lists them as its issuer', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const id = await makeAccount(vault, { issuer: 'registered-it' });
  const shown = async () =>
    (await listAccounts(vault)).map(acmeAccountView).map(({ issuer, current }) => [issuer, current]);
  assert.deepEqual(await shown(), [['registered-it', false]]);
  await makeIssuer(vault, 'b', id);
  await makeIssuer(vault, 'a', id);
  assert.deepEqual(await shown(), [['a, b', true]]);
  outside(dataDir, (db) => db.exec('update acme_issuers set account_id = null'));
  assert.deepEqual(await shown(), [['registered-it', false]]);
});

test('listAccounts returns the accounts after an id, up to the limit', async (t) => {
  const { vault } = await testVault(t);
  const made = [];
  for (let count = 0; count < 4; count += 1) made.push(await makeAccount(vault));
  const page = async (options?: Parameters<typeof listAccounts>[1]) =>
    (await listAccounts(vault, options)).map(({ id }) => id);
  assert.deepEqual(await page(), made);
  assert.deepEqual(await page({ limit: 2 }), made.slice(0, 2));
  assert.deepEqual(await page({ after: made[1] }), made.slice(2));
  assert.deepEqual(await page({ after: made[3], limit: 2 }), []);
});

test('an account is not deleted when its audit event cannot be written', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const id = await makeAccount(vault);
  const full = refuse(dataDir, 'insert', 'audit_events', { message: 'no room' });
  await assert.rejects(deleteAccount(vault, localCli, String(id)), /no room/);
  assert.equal((await listAccounts(vault)).length, 1);
  full.allow();
  await deleteAccount(vault, localCli, String(id));
  assert.deepEqual(await listAccounts(vault), []);
  assert.deepEqual(
    eventsOf(dataDir, 'acme_account.delete').map(({ actor, resource }) => [actor, resource]),
    [['local-cli', `acme-account:${id}`]],
  );
});

test('deleteAccount rejects the id of a current account and malformed ids', async (t) => {
  const { vault } = await testVault(t);
  const id = await makeAccount(vault);
  await makeIssuer(vault, 'a', id);
  const refused = async (text: string, code: string) =>
    assert.rejects(
      deleteAccount(vault, localCli, text),
      (error) => error instanceof Problem && error.code === code,
    );
  await refused(String(id), 'acme_account_current');
  for (const text of ['', ' ', '0', `0${id}`, `${id} `, `${id}.0`, '1e3', '9'.repeat(16)]) {
    await refused(text, 'acme_account_not_found');
  }
  assert.equal((await listAccounts(vault)).length, 1);
});
