/** The trust stores beside the system's: Java's, those of browsers (NSS), and the keychain of macOS. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { modeOf, trustInstaller } from '../harness/client/installer.ts';
import { quickVariables } from '../harness/processes/java.ts';
import { findProgram, needs, type Skip } from '../harness/processes/missing-program.ts';
import { enterable } from '../harness/processes/vault-process.ts';
import {
  bundleOf,
  entryFor,
  fingerprintOf,
  rootNamed,
  type TrustMachine,
  trustMachine,
} from './trust-machine.ts';

const openssl = needs('openssl');
const also = (program: string, only: Skip = {}): Skip =>
  [openssl, needs('curl'), only].find(({ skip }) => skip !== undefined) ?? needs(program);
const asRoot: Skip =
  process.getuid?.() === 0 ? needs('setpriv') : { skip: 'only root can become another user' };
const nobody = 65534;

// The CI may do without Java, which is large.
const java = findProgram('keytool') === undefined ? { skip: 'keytool is not installed' } : also('curl');
const quickly = { ...process.env, ...quickVariables };

/** Creates a store of Java with a root of an administrator, and one that the script added before. */
function javaStore({ home, url }: TrustMachine): string {
  const [folder, store] = [join(home, 'java'), join(home, 'java', 'cacerts')];
  mkdirSync(folder);
  const entries = {
    own: rootNamed('root-three'),
    [entryFor(url, rootNamed('root-one'))]: rootNamed('root-one'),
  };
  for (const [alias, { certificatePath }] of Object.entries(entries)) {
    const entry = ['-importcert', '-noprompt', '-alias', alias, '-file', certificatePath];
    const where = ['-keystore', store, '-storepass', 'changeit'];
    execFileSync('keytool', [...entry, ...where], { stdio: 'ignore', env: quickly });
  }
  chmodSync(store, 0o640);
  return store;
}

/** The aliases, sorted. */
function aliases(store: string): string[] {
  const args = ['-list', '-keystore', store, '-storepass', 'changeit', '-J-Duser.language=en'];
  const list = execFileSync('keytool', args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    env: quickly,
  });
  return [...list.matchAll(/^(\S+), .*trustedCertEntry/gm)].map(([, alias = '']) => alias).sort();
}

test("the roots in Java's store are replaced and removed", java, async (t) => {
  const machine = await trustMachine(t);
  const store = javaStore(machine);
  const run = (...args: readonly string[]) =>
    machine.runAlone(['--server', machine.url, '--no-system', '--no-nss', '--java-store', store, ...args], {
      environment: quickVariables,
    });
  const [one, two] = [rootNamed('root-one'), rootNamed('root-two')];
  // Both roots during a rotation, then the new one alone.
  machine.serve = bundleOf(one, two);
  assert.equal((await run()).code, 0);
  const both = [one, two].map((root) => entryFor(machine.url, root)).sort();
  assert.deepEqual(aliases(store), [...both, 'own']);
  machine.serve = bundleOf(two, rootNamed('root-three'));
  assert.equal((await run()).code, 0);
  assert.deepEqual(aliases(store), [entryFor(machine.url, two), 'own']);
  const before = readFileSync(store);
  assert.match((await run()).stderr, /nothing to change/);
  assert.deepEqual(readFileSync(store), before);
  assert.equal(modeOf(store), 0o640);
  assert.equal((await run('--uninstall')).code, 0);
  assert.deepEqual(aliases(store), ['own']);
  assert.deepEqual(readdirSync(join(machine.home, 'java')), ['cacerts']);
});

test("Java's store stays whole if keytool fails or is interrupted", also('curl'), async (t) => {
  const machine = await trustMachine(t);
  const store = join(machine.home, 'cacerts');
  writeFileSync(store, 'whole');
  const before = readFileSync(store);
  const run = () =>
    machine.runAlone(['--server', machine.url, '--no-system', '--no-nss', '--java-store', store]);
  const list = `case " $* " in *" -list "*) echo "Your keystore contains 0 entries"; exit 0 ;; esac`;
  machine.fake(
    'keytool',
    `${list}\nstore=; for one; do [ "$last" != -keystore ] || store=$one; last=$one; done
    echo half >"$store"; echo "keytool error: no space"; exit 1`,
  );
  const failed = await run();
  assert.equal(failed.code, 12);
  assert.match(failed.stderr, /keytool cannot change .*, so it stays as it is: keytool error: no space\n/);
  machine.fake('keytool', `${list}\nkill -TERM $PPID`);
  assert.equal((await run()).code, 143);
  machine.fake('keytool', `${list}\nkill -KILL $PPID`);
  assert.equal((await run()).code, null);
  assert.deepEqual(readFileSync(store), before);
  machine.fake('keytool', 'echo "keytool error: keystore password was incorrect"; exit 1');
  const locked = await run();
  assert.equal(locked.code, 12);
  assert.match(locked.stderr, /keytool cannot read .*: keytool error: keystore password was incorrect\n/);
  assert.deepEqual(readFileSync(store), before);
});

test('root leaves a Java store alone that another user can replace', also('chown', asRoot), async (t) => {
  const machine = await trustMachine(t);
  const [theirs, sticky] = [join(machine.home, 'theirs'), join(machine.home, 'sticky')];
  for (const folder of [theirs, sticky]) {
    mkdirSync(folder);
    writeFileSync(join(folder, 'cacerts'), '');
  }
  chownSync(theirs, nobody, nobody);
  chmodSync(sticky, 0o1777);
  machine.fake('keytool', `echo ran >>"${machine.home}/ran"`);
  const stores = [theirs, sticky].flatMap((folder) => ['--java-store', join(folder, 'cacerts')]);
  const args = ['--server', machine.url, '--no-system', '--no-nss', ...stores];
  const { code, stderr } = await machine.runAlone(args);
  assert.equal(code, 0, stderr);
  const skipped = /skipped .*cacerts: another user can change it\. Try: run this script as that user/g;
  assert.equal(stderr.match(skipped)?.length, 2, stderr);
  assert.equal(existsSync(join(machine.home, 'ran')), false);
});

/** A browser's database in the home of the machine; with a password if there is one. */
function database({ home }: TrustMachine, folder: string, password?: string): string {
  const path = join(home, folder);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(home, 'password'), `${password}\n`);
  const access = password === undefined ? ['--empty-password'] : ['-f', join(home, 'password')];
  execFileSync('certutil', ['-N', '-d', `sql:${path}`, ...access]);
  return path;
}

/** The nicknames with their trust. */
function nicknames(path: string): string[] {
  const list = execFileSync('certutil', ['-L', '-d', `sql:${path}`], { encoding: 'utf8' });
  return [...list.matchAll(/^(\S+) +(\w*,\w*,\w*) *$/gm)].map(([, name, trust]) => `${name} ${trust}`).sort();
}

test('roots are added to the databases of browsers, rotated and removed', also('certutil'), async (t) => {
  const machine = await trustMachine(t);
  const chromium = database(machine, '.pki/nssdb');
  const firefox = database(machine, '.mozilla/firefox/a b.default');
  const own = ['-A', '-n', 'own', '-t', 'C,,', '-a', '-i', rootNamed('root-two').certificatePath];
  execFileSync('certutil', [...own, '-d', `sql:${chromium}`]);
  const run = (...args: readonly string[]) =>
    machine.runAlone(['--server', machine.url, '--no-system', '--no-java', ...args]);
  const [one, two] = [rootNamed('root-one'), rootNamed('root-two')].map(
    (root) => `${entryFor(machine.url, root)} C,,`,
  );
  assert.equal((await run()).code, 0);
  assert.deepEqual([nicknames(chromium), nicknames(firefox)], [[one, 'own C,,'], [one]]);
  assert.match((await run()).stderr, /nothing to change/);
  machine.serve = bundleOf(rootNamed('root-one'), rootNamed('root-two'));
  assert.equal((await run()).code, 0);
  assert.deepEqual([nicknames(chromium), nicknames(firefox)], [[one, 'own C,,'], [one, two].sort()]);
  machine.serve = bundleOf(rootNamed('root-two'));
  assert.equal((await run()).code, 0);
  assert.deepEqual([nicknames(chromium), nicknames(firefox)], [['own C,,'], [two]]);
  assert.equal((await run('--uninstall')).code, 0);
  assert.deepEqual([nicknames(chromium), nicknames(firefox)], [['own C,,'], []]);
});

test('a database with a password stays as it is, and the others change', also('certutil'), async (t) => {
  const machine = await trustMachine(t);
  const locked = database(machine, '.mozilla/firefox/locked', 'secret');
  const open = database(machine, '.mozilla/firefox/open');
  const { code, stderr } = await machine.runAlone(['--server', machine.url, '--no-system', '--no-java']);
  assert.equal(code, 12, stderr);
  assert.match(
    stderr,
    /certutil cannot add .*firefox\/locked: .*SEC_ERROR_BAD_PASSWORD.*\nTry: remove the primary password/,
  );
  assert.deepEqual([nicknames(locked), nicknames(open).length], [[], 1]);
});

test('with sudo, the databases of the caller change, as that user', also('certutil', asRoot), async (t) => {
  const machine = await trustMachine(t);
  const path = database(machine, '.pki/nssdb');
  for (const part of ['', '.pki', '.pki/nssdb', ...readdirSync(path).map((name) => `.pki/nssdb/${name}`)])
    chownSync(join(machine.home, part), nobody, nobody);
  machine.fake('getent', `echo "nobody:x:${nobody}:${nobody}::${machine.home}:/bin/sh"`);
  const environment = { SUDO_USER: 'nobody', HOME: '/root', TMPDIR: '/tmp' };
  const args = ['--server', machine.url, '--no-system', '--no-java'];
  const { code, stderr } = await machine.runAlone(args, { environment, script: enterable(trustInstaller) });
  assert.equal(code, 0, stderr);
  assert.equal(nicknames(path).length, 1);
  assert.equal(
    execFileSync('stat', ['-c', '%u', join(path, 'cert9.db')], { encoding: 'utf8' }),
    `${nobody}\n`,
  );
});

test('without certutil the error reports the skipped databases and the fix', also('curl'), async (t) => {
  const machine = await trustMachine(t);
  const path = join(machine.home, '.pki/nssdb');
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'cert9.db'), '');
  // Only the programs that the script uses, without certutil.
  const only = join(machine.home, 'only');
  mkdirSync(only);
  const script = join(machine.home, 'install-ca.sh');
  const folders = (process.env.PATH ?? '').split(':');
  for (const name of [
    'awk',
    'cat',
    'cksum',
    'cp',
    'curl',
    'cut',
    'date',
    'fold',
    'grep',
    'id',
    'ls',
    'mkdir',
    'od',
    'rm',
    'sed',
    'sha256sum',
    'tail',
    'tr',
    'uname',
    'wc',
    'readlink',
    'sh',
  ]) {
    const folder = folders.find((one) => existsSync(join(one, name)));
    writeFileSync(join(only, name), `#!/bin/sh\nexec ${folder}/${name} "$@"\n`, { mode: 0o755 });
  }
  writeFileSync(script, readFileSync(trustInstaller, 'utf8').replace(/^ {2}PATH=.*$/m, `  PATH=${only}`));
  const { code, stderr } = await machine.runAlone(['--server', machine.url, '--no-system', '--no-java'], {
    script,
  });
  assert.equal(code, 0, stderr);
  assert.match(
    stderr,
    /skipped 1 databases of browsers in .*: certutil is not installed\nFix: install libnss3-tools/,
  );
});

/** Notes the calls of `security`, and trusts what it added: by the content of the file. */
const security = (home: string) => `echo "$*" >>"${home}/calls"
for file; do :; done
trusted="${home}/keychain/$(cksum <"$file" 2>/dev/null | tr ' ' -)"
case $1 in
  verify-cert) [ -e "$trusted" ] ;;
  add-trusted-cert) [ ! -e "${home}/refuse" ] && cp "$file" "$trusted" ;;
  remove-trusted-cert) rm -f "$trusted" ;;
esac`;

test('on macOS, each root is added to the keychain and removed again', also('curl'), async (t) => {
  const machine = await trustMachine(t);
  machine.fake('uname', 'echo Darwin');
  machine.fake('security', security(machine.home));
  mkdirSync(join(machine.home, 'keychain'));
  const environment = { CERTIFICATE_VAULT_HOME: join(machine.home, 'state') };
  const run = (...args: readonly string[]) =>
    machine.runAlone(['--server', machine.url, '--no-java', '--no-nss', ...args], { environment });
  const changes = () => machine.calls().filter((call) => !call.startsWith('verify-cert'));
  const [one, two] = [rootNamed('root-one'), rootNamed('root-two')];
  const record = (root: typeof one) =>
    join(machine.home, 'state/trust', `${entryFor(machine.url, root)}.crt`);
  const added = (root: typeof one) =>
    `add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${record(root)}`;
  writeFileSync(join(machine.home, 'refuse'), '');
  const refused = await run();
  assert.equal(refused.code, 12, refused.stderr);
  assert.equal(existsSync(record(one)), false);
  cpSync(join(machine.home, 'calls'), join(machine.home, 'refused-calls'));
  writeFileSync(join(machine.home, 'calls'), '');
  execFileSync('rm', [join(machine.home, 'refuse')]);
  assert.equal((await run()).code, 0);
  assert.deepEqual(changes(), [added(one)]);
  assert.match((await run()).stderr, /nothing to change/);
  machine.serve = bundleOf(one, two);
  assert.equal((await run()).code, 0);
  assert.deepEqual(changes(), [added(one), added(two)]);
  machine.serve = bundleOf(two);
  assert.equal((await run()).code, 0);
  const sum = fingerprintOf(one).replaceAll(':', '').toLowerCase();
  assert.deepEqual(changes().slice(2), [
    `remove-trusted-cert -d ${record(one)}`,
    `delete-certificate -Z ${sum} /Library/Keychains/System.keychain`,
  ]);
  assert.equal((await run('--uninstall')).code, 0);
  assert.deepEqual(readdirSync(join(machine.home, 'keychain')), []);
  assert.equal(existsSync(join(machine.home, 'state')), false);
});
