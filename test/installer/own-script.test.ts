/** The copy of itself that the installer keeps is what ran, never a file that another user left in its way. */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertPair, installer, type Machine, machine, shells } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? needs('curl') : { skip: 'only root can make files of another user' };
const nobody = 65_534;

/** A directory that all users can write to, with files of `nobody` that look like the installer. */
function directoryOfAll(client: Machine, names: readonly string[]): string {
  const directory = join(client.home, 'shared');
  mkdirSync(directory);
  chmodSync(directory, 0o1777);
  const evil = `#!/bin/sh
# Certificate Vault: the client.
: >'${client.home}/planted-ran'
main() { exit 0; }
main "$@"
`;
  for (const name of names) {
    const path = join(directory, name);
    writeFileSync(path, evil, { mode: 0o755 });
    if (isRoot) chownSync(path, nobody, nobody);
  }
  return directory;
}

inTurnOfShells(
  'an installer from a pipe does not run or copy a file with the name of the shell',
  async (t, shell) => {
    const vault = await clientVault(t);
    const client = machine(t, { shell });
    const cwd = directoryOfAll(client, Object.values(shells).flat());
    const input = await (await vault.get('/client/install.sh')).text();
    const installed = await vault.install(client, [], { input, cwd });
    assert.equal(installed.code, 0, installed.stderr);
    assertPair(client);
    assert.equal(readFileSync(client.copy(), 'utf8'), input);
    assert(!existsSync(join(client.home, 'planted-ran')));
  },
);

test(
  'an installer in sh -c does not copy a file of another user with the name of the shell',
  asRoot,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const cwd = directoryOfAll(client, ['sh']);
    const served = await (await vault.get('/client/install.sh')).text();
    const script = join(client.home, 'served.sh');
    writeFileSync(script, served);
    // An argument has at most 128 KiB on Linux, so that the shell reads a file; the shell and the script that follow
    // are dropped.
    const through = ['sh', '-c', `shift 2; . '${script}'`, 'sh'];
    const installed = await vault.install(client, [], { cwd, through });
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(readFileSync(client.copy(), 'utf8'), served);
  },
);

test(
  'root copies its script only if no other user can write to it, and downloads it otherwise',
  asRoot,
  async (t) => {
    const vault = await clientVault(t);
    const own = `${readFileSync(installer, 'utf8').trimEnd().slice(0, -'main "$@"'.length)}# edited\nmain "$@"\n`;
    for (const [owner, mode, isCopied] of [
      [0, 0o755, true],
      [nobody, 0o755, false],
      [0, 0o777, false],
    ] as const) {
      const client = machine(t);
      const script = join(client.home, 'edited.sh');
      writeFileSync(script, own);
      chownSync(script, owner, owner);
      chmodSync(script, mode);
      const { code, stderr } = await vault.install(client, [], { script });
      assert.equal(code, 0, stderr);
      assert.equal(readFileSync(client.copy(), 'utf8').includes('# edited'), isCopied, `${owner} ${mode}`);
    }
  },
);
