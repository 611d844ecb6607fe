/**
 * The password prompt on a real terminal, which util-linux's `script` provides: nothing typed is shown, and the
 * terminal mode is always restored.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeChain, openssl } from '../../harness/ca/openssl-chain.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable } from '../../harness/processes/vault-process.ts';

const dir = mkdtempSync(join(tmpdir(), 'vault-prompt-'));
after(() => rmSync(dir, { recursive: true }));
const bundle = join(dir, 'bundle.p12');
const question = 'Password of the PKCS#12 file: ';
const password = 'pässword ✓';
const terminal = { ...needs('openssl'), ...needs('script') };

function makeBundle(): void {
  if (existsSync(bundle)) return;
  const { fullchainPath, leaf } = makeChain(dir);
  const secret = ['-passout', `pass:${password}`];
  openssl(dir, 'pkcs12', '-export', '-in', fullchainPath, '-inkey', leaf.keyPath, ...secret, '-out', bundle);
}

/** Imports on a terminal into `data`, types the keys when the question stands there, and says how it went. */
async function typing(data: string, keys: string): Promise<{ code: string; seen: string; modes: string }> {
  makeBundle();
  const vault = [
    ...fromExecutable,
    'certificate',
    'import',
    '--name=asked',
    '--pkcs12',
    bundle,
    '--data-dir',
    data,
  ];
  const command = `${vault.join(' ')}; echo "code=$?"; stty -a`;
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/sh' },
  });
  let seen = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const wasAsked = seen.includes(question);
    seen += chunk;
    if (!wasAsked && seen.includes(question)) child.stdin.write(keys);
  });
  await once(child, 'close');
  const [said = '', rest = ''] = seen.split('code=');
  return { code: rest.trimStart()[0] ?? '', seen: said, modes: rest };
}

function assertRestored(modes: string): void {
  for (const mode of ['icanon', 'echo', 'isig', 'icrnl', 'opost'])
    assert.match(modes, new RegExp(`[^-]\\b${mode}\\b`));
}

test('the password is read without echo and can be corrected with backspace', terminal, async () => {
  const { code, seen, modes } = await typing(join(dir, 'one'), `${password}xy\u007f\b\r`);
  assert.deepEqual(
    [code, seen],
    ['0', `${question}\r\nCreated a new vault in ${join(dir, 'one')}.\r\nasked: version 1\r\n`],
  );
  assertRestored(modes);
});

test('a wrong password is rejected without echo', terminal, async () => {
  const { code, seen } = await typing(join(dir, 'wrong'), 'hunter2\n');
  assert.equal(code, '1');
  assert.ok(seen.includes(`vault: The password of the PKCS#12 file ${bundle} is wrong.\r\n`), seen);
  assert.ok(!seen.includes('hunter2'));
});

for (const [name, key] of [
  ['^C', '\u0003'],
  ['^D', '\u0004'],
] as const) {
  test(`${name} at the prompt restores the terminal and stores nothing`, terminal, async () => {
    const data = join(dir, `stopped by ${name}`.replaceAll(/\W/g, '-'));
    const { code, seen, modes } = await typing(data, `begun${key}`);
    assert.deepEqual(
      [code, seen],
      ['1', `${question}\r\nvault: no password entered\r\n  Nothing was stored.\r\n`],
    );
    assertRestored(modes);
    assert.equal(existsSync(data), false);
  });
}
