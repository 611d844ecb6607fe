/** The table of commands on a vault at a server, beside all commands and all operations. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { hostCommands, placelessCommands, remoteCommands } from '../../../src/cli/remote/remote-commands.ts';
import { allCommands } from '../../harness/command-tree.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { vault } from '../../harness/processes/vault-process.ts';

const remote = Object.keys(remoteCommands);
const host = Object.keys(hostCommands);

test('the table places every command in one way', async () => {
  const commands = (await allCommands()).map(({ words }) => words.join(' '));
  assert.deepEqual([...remote, ...host, ...placelessCommands].toSorted(), commands.toSorted());
});

test('the table names only operations of administrators and API keys', () => {
  const known = routes.filter(({ access }) => access.kind !== 'session').map(({ id }) => id);
  const named = Object.values(remoteCommands).flat();
  assert.deepEqual(
    named.filter((id) => !known.includes(id)),
    [],
  );
});

test('every command that works at a server is compared both ways', () => {
  const files = readdirSync(import.meta.dirname).filter((name) => name.startsWith('remote-vault'));
  const steps = files.map((name) => readFileSync(join(import.meta.dirname, name), 'utf8')).join('');
  const missing = remote.filter((command) => !new RegExp(`['\`]${command}[ '\`]`).test(steps));
  assert.deepEqual(missing, []);
});

test('each command of this machine refuses a server before it does anything', async () => {
  const environment = { CERTVAULT_SERVER: 'https://vault.example.test' };
  for (const command of host) {
    const { code, stdout, stderr } = await vault(command.split(' '), { environment });
    assert.equal(code, 2, command);
    assert.equal(stdout, '');
    assert.equal(
      stderr,
      `vault: "${command}" works only on the vault's machine: ${hostCommands[command]}\n  Run it there, without --server and CERTVAULT_SERVER.\n`,
    );
  }
});
