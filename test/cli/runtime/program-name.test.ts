/**
 * The program under its second name, `certificate-vault`, as a link and as a copy: everything people read says that
 * name.
 */
import assert from 'node:assert/strict';

import { constants, copyFileSync, readFileSync, readlinkSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { root } from '../../../src/cli/commands/run.ts';
import { named } from '../../../src/cli/runtime/program-name.ts';
import { allCommands } from '../../harness/command-tree.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const dir = tempDir({ after: (end) => process.once('exit', end) });
const link = join(dir, 'certificate-vault');
const program = [link];

before(() => symlinkSync(fromExecutable[0], link));

const texts: readonly (readonly [text: string, own: string])[] = [
  ['vault: no vault in /data', 'certificate-vault: no vault in /data'],
  ['  Start "vault serve" to create one', '  Start "certificate-vault serve" to create one'],
  ['  Try: vault admin create --name NAME', '  Try: certificate-vault admin create --name NAME'],
  ['Try: sudo -u vault vault backup FILE', 'Try: sudo -u vault certificate-vault backup FILE'],
  ['\u001b[36mvault serve\u001b[39m', '\u001b[36mcertificate-vault serve\u001b[39m'],
  ['vault man | man -l -', 'certificate-vault man | man -l -'],
  ['Copy it to /usr/local/bin/vault and', 'Copy it to /usr/local/bin/certificate-vault and'],
  ['the vault served no request', 'the vault served no request'],
  ['Created a new vault in /var/lib/vault.', 'Created a new vault in /var/lib/vault.'],
  ['vault.yaml has "vault": serve', 'vault.yaml has "vault": serve'],
];

for (const [text, own] of texts) {
  test(`"${JSON.stringify(text).slice(1, -1)}" is ${text === own ? 'left unchanged' : 'rewritten to certificate-vault'}`, () => {
    assert.equal(named(text, 'certificate-vault'), own);
    assert.equal(named(text, 'vault'), text);
  });
}

const firstWords = [...Object.keys(root.subCommands ?? {}), 'help'];

test('every command after the word vault is rewritten to certificate-vault', () => {
  for (const word of firstWords)
    assert.equal(named(`vault ${word}`, 'certificate-vault'), `certificate-vault ${word}`);
});

/** Whether a text calls a command by the name that it does not have here. */
const otherName = new RegExp(`(?<![\\w./-])vault (?:${firstWords.join('|')})(?![\\w-])`);

test('help of every command and usage errors print certificate-vault', async () => {
  const commands = await allCommands();
  const shown = await Promise.all(
    [...commands.map(({ words }) => words), [], ['help', 'options']].map(async (words) => {
      const { stdout } = await vault([...words, ...(words[0] === 'help' ? [] : ['--help'])], { program });
      return { words, stdout };
    }),
  );
  for (const { words, stdout } of shown) {
    assert.doesNotMatch(stdout, otherName, words.join(' '));
    if (words[0] !== 'help') assert.match(stdout, /certificate-vault/, words.join(' '));
  }
  const { code, stderr } = await vault(['certificate', 'creat'], { program });
  assert.deepEqual(
    [code, stderr],
    [2, 'certificate-vault: unknown command "creat"\n  Did you mean "create"?\n'],
  );
});

test('errors and their hints print certificate-vault', async (t) => {
  const data = join(tempDir(t), 'data');
  const { stderr } = await vault(['certificate', 'list', '--data-dir', data], { program });
  assert.equal(
    stderr,
    `certificate-vault: no vault in ${data}\n` +
      '  Start "certificate-vault serve" to create one, or use --data-dir to name another directory.\n',
  );
});

test('a copy called certificate-vault prints that name; a copy with another name prints vault', async (t) => {
  const folder = tempDir(t);
  for (const name of ['certificate-vault', 'cv']) {
    const copy = join(folder, name);
    copyFileSync(fromExecutable[0], copy, constants.COPYFILE_FICLONE);
    const { stderr } = await vault(['nothing'], { program: [copy] });
    assert.ok(stderr.startsWith(`${name === 'cv' ? 'vault' : name}: unknown command`), stderr);
  }
});

test('the build creates the link certificate-vault next to the executable', () => {
  assert.equal(readlinkSync(join(fromExecutable[0], '..', 'certificate-vault')), 'vault');
});

test('completion scripts of certificate-vault complete only that name, with functions of their own', async () => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout } = await vault(['completion', shell], { program });
    assert.doesNotMatch(stdout, otherName, shell);
    assert.doesNotMatch(stdout, /(?<![\w-])_+vault/, shell);
    assert.doesNotMatch(stdout, /(complete -c|#compdef|-F \w+|compdef \w+) vault\b/, shell);
  }
});

test('bash completes object names for certificate-vault', needs('bash'), async (t) => {
  const data = join(tempDir(t), 'data');
  const create = ['certificate', 'create', '--name', 'shop', '--domain', 'shop.test', '--data-dir', data];
  assert.equal((await vault(create, { program })).code, 0);
  const script = `source <(certificate-vault completion bash)
    COMP_LINE='certificate-vault certificate show --name sh'; COMP_POINT=\${#COMP_LINE}
    _certificate_vault; echo "\${COMPREPLY[*]}"; complete -p certificate-vault`;
  const environment = { PATH: `${dir}:${process.env.PATH}`, VAULT_DATA_DIR: data };
  const { stdout, stderr } = await vault(['-c', script], { program: ['bash'], environment });
  assert.equal(stderr, '');
  assert.match(stdout, /^shop\n.*-F _certificate_vault certificate-vault\n$/);
});

test('the manual page of certificate-vault uses that name', async () => {
  const { stdout } = await vault(['man'], { program });
  assert.match(stdout, /^\.TH CERTIFICATE-VAULT 8 /);
  assert.match(stdout, /\n\.SS certificate\\-vault certificate create\n/);
  assert.match(stdout, /certificate\\-vault man > \/usr\/local\/share\/man\/man8\/certificate\\-vault\.8\n/);
  assert.doesNotMatch(stdout.replaceAll('\\-', '-'), otherName);
});

test('the systemd unit of certificate-vault starts the link, found by its path or in PATH', async () => {
  const byPath = await vault(['systemd-unit'], { program });
  assert.match(byPath.stdout, new RegExp(`^ExecStart=${link} serve$`, 'm'));
  assert.doesNotMatch(byPath.stdout, otherName);
  const environment = { PATH: `${dir}:${process.env.PATH}` };
  const inPath = await vault(['-c', 'certificate-vault systemd-unit'], { program: ['sh'], environment });
  assert.equal(inPath.stdout, byPath.stdout);
});

test('the server process and its log use the name certificate-vault', async (t) => {
  const server = await serve(t, join(tempDir(t), 'data'), { program });
  assert.equal(readFileSync(`/proc/${server.pid}/comm`, 'utf8'), 'certificate-vau\n');
  assert.equal((await server.end()).code, 0);
  assert.match(server.log(), /^ {2}certificate-vault admin setup-link --data-dir /m);
});
