/** `vault acme-account …`: what the vault has at CAs, and what people do with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLineWithCa, commandWords } from '../../../harness/processes/command-line.ts';

const create = commandWords('certificate create --name web --domain web.test --issuer ca --wait');
const renew = commandWords('certificate renew --name web --wait');

test('list without accounts prints a hint on stderr, or an empty array with --json', async (t) => {
  const { run } = await commandLineWithCa(t);
  assert.deepEqual(await run('acme-account', 'list'), {
    code: 0,
    stdout: '',
    stderr: 'No ACME accounts yet. The vault registers an account at its first order.\n',
  });
  assert.equal((await run('acme-account', 'list', '--json')).stdout, '[]\n');
});

test('an account is listed without its key and still orders after a key rollover', async (t) => {
  const { ca, done, json } = await commandLineWithCa(t);
  await done(...create);
  const { stdout } = await done('acme-account', 'list');
  assert.equal(
    stdout,
    `ID  ISSUER  STATUS  CURRENT  CONTACT  DIRECTORY\n1   ca      valid   yes      -        ${ca.directoryUrl}\n`,
  );
  const [view] = await json<Record<string, unknown>[]>('acme-account', 'list');
  const fields = ['id', 'issuer', 'directory_url', 'email', 'status', 'current', 'created_at'];
  assert.deepEqual(Object.keys(view ?? {}), fields);
  const thumbprint = () => [...ca.state.accounts.values()].map((account) => account.thumbprint).join();
  const before = thumbprint();
  const { stderr } = await done('acme-account', 'rollover', '--id', '1');
  assert.equal(stderr, 'Replaced the key of account 1.\n');
  assert.notEqual(thumbprint(), before);
  await done(...renew);
  assert.equal(ca.state.accounts.size, 1);
});

test('an account in use cannot be deleted until it is deactivated and replaced at the next order', async (t) => {
  const { ca, done, refused, json } = await commandLineWithCa(t);
  await done(...create);
  await refused(
    ['acme-account', 'delete', '--id', '1'],
    'vault: ACME account 1 cannot be deleted: issuer ca uses it.\n' +
      '  Remove the issuer first, or change its directory.\n',
  );
  assert.equal((await done('acme-account', 'deactivate', '--id', '1')).stderr, 'Deactivated account 1.\n');
  assert.deepEqual(
    [...ca.state.accounts.values()].map(({ status }) => status),
    ['deactivated'],
  );
  await refused(['acme-account', 'rollover', '--id', '1'], 'vault: the account is deactivated\n');
  await done(...renew);
  const accounts = await json<{ id: string; status: string; current: boolean }[]>('acme-account', 'list');
  assert.deepEqual(
    accounts.map(({ id, status, current }) => [id, status, current]),
    [
      ['1', 'deactivated', false],
      ['2', 'valid', true],
    ],
  );
  assert.equal((await done('acme-account', 'delete', '--id', '1')).stderr, 'Deleted account 1.\n');
});

test('an unknown or invalid account id is rejected by every command', async (t) => {
  const { refused } = await commandLineWithCa(t);
  for (const command of ['rollover', 'deactivate', 'delete']) {
    for (const id of ['1', '0', 'x', '1e3', '99999999999999999999']) {
      await refused(
        ['acme-account', command, '--id', id],
        /^vault: ACME account not found\.\n {2}Try: vault acme-account list/,
      );
    }
    await refused(['acme-account', command], /^vault: --id is missing\n/, 2);
  }
});
