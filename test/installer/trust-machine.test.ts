/**
 * The script that installs trust on this machine itself, in a mount namespace that hides its changes: the real
 * update-ca-certificates, the vault's own HTTPS, and the search for Java.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { finish, trustInstaller } from '../harness/client/installer.ts';
import { findProgram, needs, type Skip } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { entryFor, rootNamed, trustMachine } from './trust-machine.ts';

const namespace = ['--mount', '--map-root-user'];

/** The kernel or a container may forbid mounts. */
function mayMount(): Skip {
  const mount = ['sh', '-c', 'mount -t tmpfs none /usr/local/share'];
  const { status } = spawnSync('unshare', [...namespace, ...mount], { stdio: 'ignore' });
  return status === 0 ? needs('curl') : { skip: 'the kernel does not let this user mount file systems' };
}

const debian: Skip =
  findProgram('update-ca-certificates', ['/usr/sbin']) === undefined
    ? { skip: 'this system has no update-ca-certificates' }
    : mayMount();

/** Elsewhere the folders of Java belong to a user whom the namespace does not know. */
const search: Skip =
  process.getuid?.() !== 0
    ? { skip: 'only root owns the folders where Java is searched' }
    : needs('openssl').skip === undefined
      ? mayMount()
      : needs('openssl');

/** Runs a shell script in a namespace of its own, without the variables that configure TLS and proxies here. */
const inside = (home: string, script: string, ...args: readonly string[]) =>
  finish('unshare', [...namespace, 'sh', '-ec', script, 'sh', ...args], {
    environment: {
      HOME: home,
      TMPDIR: home,
      PATH: process.env.PATH,
      CERTIFICATE_VAULT_HOME: join(home, 'state'),
    },
  });

test('curl trusts the vault after one line, and no longer after --uninstall', debian, async (t) => {
  const [home, dataDir] = [tempDir(t), tempDir(t)];
  const server = await serve(t, dataDir, { args: ['--tls-certificate', 'vault'] });
  const { stdout: shown } = await vault(['certificate', 'show', '--name', 'vault', '--data-dir', dataDir]);
  const pin = /^Public key pin +(\S+)$/m.exec(shown)?.[1] ?? assert.fail(shown);
  mkdirSync(join(home, 'certs'));
  const script = `
url=$1 pin=$2
cp -a /etc/ssl/certs/. "$HOME/certs/"
mount --bind "$HOME/certs" /etc/ssl/certs
# What other packages do then, such as rewriting Java's store, takes seconds.
[ ! -d /etc/ca-certificates/update.d ] || mount -t tmpfs none /etc/ca-certificates/update.d
mount -t tmpfs none /usr/local/share
trusted() { if curl -fsS "$url/api/v1/health" >/dev/null 2>&1; then echo trusted; else echo untrusted; fi; }
client() { curl -fsS -k --pinnedpubkey "$pin" "$url/client/install-ca.sh" | sh -s -- --no-java --no-nss "$@"; }
trusted
client --pin "$pin"
trusted
client --pin "$pin"
client
client --uninstall
trusted
mount -o remount,ro /usr/local/share
client --pin "$pin" || echo "exit $?"
trusted`;
  const { code, stdout, stderr } = await inside(home, script, server.url, pin);
  assert.equal(code, 0, stderr);
  assert.equal(stdout, 'untrusted\ntrusted\nuntrusted\nexit 12\nuntrusted\n');
  assert.match(
    stderr,
    /: root certificate "Certificate Vault Root \w+", valid until 20\d\d-\d\d-\d\d; SHA-256/,
  );
  // The third run downloads without a pin, because curl trusts the vault by then.
  assert.equal(stderr.split('nothing to change').length - 1, 2);
  assert.match(stderr, /: cannot write to \/usr\/local\/share\S*; is it read-only, or outside --root\?\n$/);
});

test('the stores of all Java versions are found, each once, with its own keytool', search, async (t) => {
  const machine = await trustMachine(t);
  const script = `
mount -t tmpfs -o mode=755 none /opt
[ ! -d /usr/lib/jvm ] || mount -t tmpfs -o mode=755 none /usr/lib/jvm
mkdir -p /opt/new/lib/security /opt/new/bin /opt/old/jre/lib/security /opt/without
ln -s new /opt/default
echo new >/opt/new/lib/security/cacerts
echo old >/opt/old/jre/lib/security/cacerts
note() { printf '#!/bin/sh\\necho "$0 $*" | cut -d " " -f 1-5 >>"$HOME/keytool-calls"\\n' >"$1"; chmod 755 "$1"; }
note /opt/new/bin/keytool
note "$HOME/bin/keytool"
export JAVA_HOME=/opt/old PATH="$HOME/bin:$PATH"
sh "$@"
cat "$HOME/keytool-calls"`;
  const args = ['--server', machine.url, '--no-system', '--no-nss', '--dry-run'];
  const { code, stdout, stderr } = await inside(machine.home, script, trustInstaller, ...args);
  assert.equal(code, 0, stderr);
  const entry = entryFor(machine.url, rootNamed('root-one'));
  const [old, recent] = ['/opt/old/jre/lib/security/cacerts', '/opt/new/lib/security/cacerts'];
  assert.deepEqual(stdout.trimEnd().split('\n'), [
    `would add ${entry}: ${old}`,
    `would add ${entry}: ${recent}`,
    `${machine.bin}/keytool -list -rfc -keystore ${old}`,
    `/opt/new/bin/keytool -list -rfc -keystore ${recent}`,
  ]);
});
