/**
 * The recipe of docs/how-to/master-key-stores.md for PKCS#11, with SoftHSM as the token: its RSA key alone opens the
 * master key.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';

const modules = ['/usr/lib/softhsm', '/usr/lib64/pkcs11', '/usr/lib64/softhsm', '/opt/homebrew/lib/softhsm'];
const skip = { ...needs('softhsm2-util'), ...needs('pkcs11-tool'), ...needs('openssl') };
const recipe = readFileSync(new URL('../../../../docs/how-to/master-key-stores.md', import.meta.url), 'utf8');

test('a vault opens with a key that only a PKCS#11 token can decrypt', skip, async (t) => {
  const dir = dirname(commandLine(t).data);
  const module = modules.map((folder) => join(folder, 'libsofthsm2.so')).find((path) => existsSync(path));
  assert(module !== undefined, 'libsofthsm2.so');
  const configuration = join(dir, 'softhsm2.conf');
  mkdirSync(join(dir, 'tokens'), { mode: 0o700 });
  writeFileSync(configuration, `directories.tokendir = ${join(dir, 'tokens')}\n`);
  const environment = { ...process.env, SOFTHSM2_CONF: configuration, PIN: '87654321' };
  const run = (program: string, args: readonly string[], input?: Buffer) =>
    execFileSync(program, args, { env: environment, input, stdio: ['pipe', 'pipe', 'pipe'] });
  const token = ['--module', module, '--token-label', 'vault'];
  const login = [...token, '--login', '--pin', 'env:PIN'];
  run('softhsm2-util', [
    '--init-token',
    '--free',
    '--label',
    'vault',
    '--so-pin',
    '12345678',
    '--pin',
    '87654321',
  ]);
  run('pkcs11-tool', [...login, '--keypairgen', '--key-type', 'rsa:3072', '--id', '01', '--label', 'vault']);
  const key = randomBytes(32);
  const [publicKey, sealed] = [join(dir, 'public.der'), join(dir, 'master.key.sealed')];
  run('pkcs11-tool', [
    ...token,
    '--read-object',
    '--type',
    'pubkey',
    '--id',
    '01',
    '--output-file',
    publicKey,
  ]);
  const encrypt = ['pkeyutl', '-encrypt', '-pubin', '-keyform', 'DER', '-inkey', publicKey];
  run('openssl', [...encrypt, '-pkeyopt', 'rsa_padding_mode:oaep', '-out', sealed], key);

  // The script as the page has it, with the places of this test.
  const script = /^#!\/bin\/sh\n(?:(?!```)[\s\S])*?pkcs11-tool[\s\S]*?(?=```)/m.exec(recipe)?.[0] ?? '';
  assert.match(script, /--decrypt/);
  const pin = join(dir, 'pin');
  writeFileSync(pin, '87654321\n', { mode: 0o600 });
  const program = join(dir, 'print-master-key');
  const places: Readonly<Record<string, string>> = {
    '/etc/vault/softhsm2.conf': configuration,
    '/etc/vault/pin': pin,
    '/etc/vault/master.key.sealed': sealed,
    '/usr/lib/softhsm/libsofthsm2.so': module,
  };
  const here = Object.entries(places).reduce((text, [place, path]) => text.replaceAll(place, path), script);
  assert(!here.includes('/etc/vault'), here);
  writeFileSync(program, here);
  chmodSync(program, 0o755);

  const vault = commandLine(t, { environment: { VAULT_MASTER_KEY_COMMAND: program } });
  await vault.done('certificate', 'create', '--name=web', '--domain=a.test');
  assert.equal((await vault.json<unknown[]>('certificate', 'list')).length, 1);
  assert(!vault.holds(key));

  writeFileSync(pin, '11111111\n');
  await vault.refused(
    ['certificate', 'list'],
    /^vault: the master key command failed: .*failed with exit code 1: .*CKR_PIN_INCORRECT/,
  );
});
