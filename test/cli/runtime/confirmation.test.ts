/** Commands that destroy something, on a real terminal (util-linux's `script`): they ask, and only a yes goes ahead. */
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandLine, commandLineWithCa, commandWords } from '../../harness/processes/command-line.ts';
import {
  type Answer,
  onTerminal,
  needsTerminal as terminal,
} from '../../harness/processes/terminal-session.ts';

/** Runs the command on a terminal and types each answer once its question stands there. */
const typing = (data: string, line: string, ...dialog: readonly Answer[]) =>
  onTerminal(data, line, { dialog });

test('api-key delete asks for confirmation on a terminal, and not without one', terminal, async (t) => {
  const { data, done } = commandLine(t);
  for (const name of ['one', 'two']) {
    await done('api-key', 'create', `--name=${name}`, '--scope=certificates:read', '--certificate=*');
  }
  for (const id of ['1', '2']) await done('api-key', 'revoke', '--id', id);
  const question = 'Delete API key 1? The audit log keeps its events. [y/N] ';
  const no = await typing(data, 'api-key delete --id 1', [question, 'n\n']);
  assert.equal(no.code, 1);
  assert.match(no.said, /vault: not confirmed; nothing was changed\n/);
  assert.match((await done('api-key', 'list')).stdout, /"one"/);
  const yes = await typing(data, 'api-key delete --id 1', [question, 'y\n']);
  assert.deepEqual([yes.code, yes.said.includes('Deleted API key 1.')], [0, true], yes.said);
  await done('api-key', 'delete', '--id', '2');
  assert.deepEqual(JSON.parse((await done('api-key', 'list')).stdout), []);
});

test(
  'issuer remove asks for confirmation on a terminal; without one, only an EAB key requires --yes',
  terminal,
  async (t) => {
    const { data, done, refused, json, file, ca } = await commandLineWithCa(t);
    const no = await typing(data, 'issuer remove --name ca', ['Remove issuer ca? [y/N] ', '\n']);
    assert.equal(no.code, 1, no.said);
    assert.equal((await json<unknown[]>('issuer', 'list')).length, 2);
    const yes = await typing(data, 'issuer remove --name ca', ['Remove issuer ca? [y/N] ', 'y\n']);
    assert.equal(yes.code, 0, yes.said);
    assert.equal((await json<unknown[]>('issuer', 'list')).length, 1);
    const key = file('c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0');
    const trust = ca.ca === undefined ? [] : ['--ca-file', file(ca.ca)];
    const eab = ['--eab-kid', 'kid', '--eab-hmac-key-file', key, '--accept-terms'];
    await done('issuer', 'add', '--name', 'bound', '--directory', ca.directoryUrl, ...trust, ...eab);
    await refused(
      commandWords('issuer remove --name bound'),
      'vault: refusing without confirmation: Remove issuer bound and its key for external account binding?\n' +
        '  Add --yes to confirm. Nothing was changed.\n',
    );
    await done(...commandWords('issuer remove --name bound --yes'));
  },
);

test(
  'acme-account delete asks for confirmation on a terminal and is rejected without one',
  terminal,
  async (t) => {
    const { data, done, refused } = await commandLineWithCa(t);
    await done(...commandWords('certificate create --name web --domain web.test --issuer ca --wait'));
    const remove = 'acme-account delete --id 1';
    await refused(commandWords(remove), /^vault: ACME account 1 cannot be deleted: issuer ca uses it/);
    await done(...commandWords('certificate delete --name web'));
    // Not asked, as nothing is lost with it.
    await done(...commandWords('issuer remove --name ca'));
    await refused(
      commandWords(remove),
      /^vault: refusing without confirmation: Delete account 1 and its key\?/,
    );
    const yes = await typing(data, remove, ['nothing closes the account at its CA. [y/N] ', 'yes\n']);
    assert.equal(yes.code, 0, yes.said);
  },
);

test(
  'restore --replace and master-key remove on a terminal proceed only after confirmation',
  terminal,
  async (t) => {
    const { data, done, json, file } = commandLine(t);
    await done(...commandWords('certificate create --name web --domain web.test'));
    const backup = join(dirname(data), 'vault.backup');
    await done('backup', backup);
    await done(...commandWords('certificate create --name late --domain late.test'));
    const ask = ['a copy of the vault stays. [y/N] ', 'n\n'] as const;
    assert.equal((await typing(data, `restore ${backup} --replace`, ask)).code, 1);
    assert.equal((await json<unknown[]>('certificate', 'list')).length, 2);
    const yes = await typing(data, `restore ${backup} --replace`, [ask[0], 'y\n']);
    assert.equal(yes.code, 0, yes.said);
    assert.equal((await json<unknown[]>('certificate', 'list')).length, 1);
    const [old] = (await json<{ keys: { id: string }[] }>('master-key', 'status')).keys;
    await done('master-key', 'rotate');
    const passphrase = file('several words in a row\n');
    chmodSync(passphrase, 0o600);
    await done('master-key', 'seal', '--passphrase-file', passphrase);
    const removed = await typing(
      data,
      `master-key remove --id ${old?.id}`,
      ['Passphrase for the master key in ', 'several words in a row\n'],
      [`Remove master key ${old?.id}?`, 'y\n'],
    );
    assert.deepEqual([removed.code, removed.said.includes('Removed: ')], [0, true], removed.said);
  },
);
