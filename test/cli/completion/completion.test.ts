/** What shells offer when the user presses Tab: in real shells, with the names of a real vault. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after, before, test } from 'node:test';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, vault } from '../../harness/processes/vault-process.ts';

const root = mkdtempSync(join(tmpdir(), 'vault-completion-'));
after(() => rmSync(root, { recursive: true }));
const data = join(root, 'data');
const env = {
  ...process.env,
  PATH: `${root}${delimiter}${process.env.PATH}`,
  VAULT_DATA_DIR: data,
  HOME: root,
};

before(async () => {
  symlinkSync(fromExecutable[0], join(root, 'vault'));
  mkdirSync(join(root, 'here'));
  writeFileSync(join(root, 'here', 'fullchain.pem'), '');
  for (const name of ['shop', 'shipping', '*.example.test']) {
    const args = ['certificate', 'create', '--name', name, '--domain', 'a.test', '--data-dir', data];
    assert.equal((await vault(args)).code, 0);
  }
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout, stderr } = await vault(['completion', shell]);
    assert.deepEqual([code, stderr], [0, '']);
    writeFileSync(join(root, `completion.${shell}`), stdout);
  }
});

/** What each shell offers for a line whose cursor is at its end. */
const cases: readonly (readonly [line: string, offered: readonly string[]])[] = [
  ['vault cert', ['certificate']],
  ['vault certificate re', ['renew', 'revoke']],
  ['vault certificate create --key-type rsa', ['rsa2048', 'rsa3072', 'rsa4096']],
  ['vault certificate show --name sh', ['shipping', 'shop']],
  ['vault certificate create --name x --issuer ', ['local-ca']],
  ['vault certificate import --fullchain ful', ['fullchain.pem']],
  ['vault api-key create --name x --scope certificates:', ['certificates:read', 'certificates:sign']],
  ['vault certificate list --js', ['--json']],
  ['vault audit list --certificate sh', ['shipping', 'shop']],
  ['vault audit export --format c', ['csv']],
  ['vault completion f', ['fish']],
];

const run = (program: string, args: readonly string[]) =>
  execFileSync(program, args, { cwd: join(root, 'here'), env, encoding: 'utf8', timeout: 60_000 });

test('bash completes commands, options, values, files and object names', needs('bash'), () => {
  const offered = (line: string) => {
    const script = `source ${join(root, 'completion.bash')}
      COMP_LINE="$1"; COMP_POINT=\${#1}; _vault; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run('bash', ['--norc', '-c', script, 'bash', line]).split('\n').filter(Boolean).sort();
  };
  for (const [line, expected] of cases) {
    // bash itself keeps what stands before a colon.
    const shown = expected.map((word) => word.replace(/^certificates:/, ''));
    assert.deepEqual(offered(line), shown, line);
  }
  assert.deepEqual(offered('vault certificate show --name=sh'), ['shipping', 'shop']);
  assert.deepEqual(offered('vault certificate show --name *'), ['*.example.test']);
  assert.deepEqual(offered('vault apply -f ful'), ['fullchain.pem']);
  assert.deepEqual(offered('vault certificate create --name x --reuse-key --wai'), ['--wait']);
});

test('fish completes commands, options, values, files and object names', needs('fish'), () => {
  for (const [line, expected] of cases) {
    const script = `source ${join(root, 'completion.fish')}; complete -C $argv[1]`;
    const offered = run('fish', ['--no-config', '-c', script, line])
      .split('\n')
      .filter(Boolean)
      .map((text) => text.split('\t')[0] ?? '');
    assert.deepEqual(offered.sort(), expected, line);
  }
});

test('zsh completes commands, options, values, files and object names', needs('zsh'), () => {
  for (const [line, expected] of cases) {
    const script = `compdef() { :; }
      compadd() { [[ $1 == -- ]] && shift; print -rl -- "$@"; }
      _describe() { print -rl -- "\${(@)\${(P)3}%%:*}"; }
      _files() { print -rl -- *(N); }
      compset() { PREFIX="\${PREFIX#*=}"; }
      source ${join(root, 'completion.zsh')}
      words=("\${(@s: :)1}"); CURRENT=$#words; PREFIX="$words[-1]"; _vault`;
    const words = run('zsh', ['-f', '-c', script, 'zsh', line]).split('\n');
    // zsh itself leaves out what does not begin as what was typed.
    const typed = line.split(' ').at(-1) ?? '';
    assert.deepEqual(words.filter((word) => word !== '' && word.startsWith(typed)).sort(), expected, line);
  }
});

test('completion --names prints nothing without a vault or with a data directory that others can read', async () => {
  const names = (dir: string) => vault(['completion', '--names', 'certificates', '--data-dir', dir]);
  const nothing = { code: 0, stdout: '', stderr: '' };
  assert.deepEqual(await names(join(root, 'none')), nothing);
  assert.equal(readdirSync(root).includes('none'), false);
  chmodSync(data, 0o755);
  assert.deepEqual(await names(data), nothing);
  chmodSync(data, 0o700);
  assert.equal((await names(data)).stdout, '*.example.test\nshipping\nshop\n');
});

test('an unknown shell and an unknown kind of names are rejected with the known ones', async () => {
  assert.deepEqual(await vault(['completion', 'csh']), {
    ...{ code: 2, stdout: '' },
    stderr: 'vault: unknown shell "csh"\n  Use one of bash, zsh, fish.\n',
  });
  const { code, stderr } = await vault(['completion', '--names', 'secrets']);
  assert.equal(code, 2);
  assert.match(
    stderr,
    /^vault: --names: unknown kind "secrets"\n {2}Use one of certificates, issuers, dns-providers\.\n$/,
  );
});
