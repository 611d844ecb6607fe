/** The system's trust store: each supported system, each shell, and everything that can go wrong while it changes. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { finish, modeOf, trustInstaller } from '../harness/client/installer.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { enterable } from '../harness/processes/vault-process.ts';
import { inTurnOfShells } from './places.ts';
import {
  bundleOf,
  entryFor,
  fingerprintOf,
  rebuilding,
  rootNamed,
  systems,
  type TrustMachine,
  trustMachine,
} from './trust-machine.ts';

const curl = needs('openssl').skip === undefined ? needs('curl') : needs('openssl');

test('shellcheck reports nothing for the script', needs('shellcheck'), () => {
  execFileSync('shellcheck', ['-s', 'sh', trustInstaller]);
});

/** Nothing is left of a run apart from anchors. */
function assertTidy({ home, image }: TrustMachine): void {
  assert.deepEqual(
    readdirSync(home).filter((name) => name.startsWith('certificate-vault')),
    [],
  );
  assert.equal(existsSync(join(image, 'var/lib/certificate-vault')), false);
}

async function lifeOfARoot(machine: TrustMachine): Promise<void> {
  const [one, two] = [rootNamed('root-one'), rootNamed('root-two')];
  const entries = [one, two].map((root) => `${entryFor(machine.url, root)}.crt`);
  const installed = await machine.run();
  assert.equal(installed.code, 0, installed.stderr);
  assert(installed.stderr.includes(`\n  ${fingerprintOf(one)}\n`), installed.stderr);
  assert.deepEqual([machine.anchors(), machine.trusted()], [[entries[0]], ['root-one']]);
  const again = await machine.run();
  assert.equal(again.code, 0);
  assert.match(again.stderr, /nothing to change: this machine trusts the private CA already\n$/);
  assert.equal(machine.calls().length, 1);
  machine.serve = bundleOf(one, two);
  assert.equal((await machine.run()).code, 0);
  assert.deepEqual(machine.trusted(), ['root-one', 'root-two']);
  machine.serve = bundleOf(two);
  const rotated = await machine.run();
  assert.match(rotated.stderr, /: removed certificate-vault-.* from the system's trust store\n/);
  assert.deepEqual([machine.anchors(), machine.trusted()], [[entries[1]], ['root-two']]);
  const removed = await machine.run(['--uninstall']);
  assert.equal(removed.code, 0, removed.stderr);
  assert.deepEqual([machine.anchors(), machine.trusted()], [[], []]);
  assert.equal(machine.requests(), 4);
  assertTidy(machine);
}

suite('a root is added, rotated and removed on each system', { concurrency: 2 }, () => {
  for (const [name, system] of Object.entries(systems)) {
    test(`a root is added, rotated and removed on ${name}`, curl, async (t) => {
      const machine = await trustMachine(t, { system });
      await lifeOfARoot(machine);
      assert.deepEqual(machine.calls(), Array(4).fill(system.command));
    });
  }
});

inTurnOfShells('a root is added, rotated and removed', async (t, shell) => {
  await lifeOfARoot(await trustMachine(t, { shell }));
});

test('a root is added with BusyBox programs', needs('busybox'), async (t) => {
  await lifeOfARoot(await trustMachine(t, { shell: 'busybox', userland: 'busybox' }));
});

test('a root is added with zsh as sh and the awk of BSD and macOS', needs('zsh'), async (t) => {
  const machine = await trustMachine(t);
  machine.fake('awk', 'exec original-awk "$@"');
  const args = ['--emulate', 'sh', trustInstaller, '--server', machine.url, '--root', machine.image];
  const installed = await finish('zsh', args, {
    environment: { PATH: `${machine.bin}:${process.env.PATH}`, TMPDIR: machine.home, HOME: machine.home },
  });
  assert.equal(installed.code, 0, installed.stderr);
  assert.deepEqual(machine.trusted(), ['root-one']);
});

test('anchors are readable by all users, and the script adds no other files', curl, async (t) => {
  const machine = await trustMachine(t);
  assert.equal((await machine.run()).code, 0);
  const [name = ''] = machine.anchors();
  const path = join(machine.image, systems.debian.anchors, name);
  assert.equal(modeOf(path), 0o644);
  assert.equal(readFileSync(path, 'utf8'), rootNamed('root-one').certificatePem);
  assertTidy(machine);
});

test('a root that an administrator added is not added again, and stays at --uninstall', curl, async (t) => {
  const machine = await trustMachine(t);
  const own = join(machine.image, systems.debian.anchors, 'own.crt');
  writeFileSync(own, rootNamed('root-one').certificatePem.replaceAll('\n', '\r\n'));
  // It is there, but the system has not read it yet.
  const installed = await machine.run();
  assert.match(installed.stderr, /: rebuilt the system's trust store from /);
  assert.deepEqual(machine.trusted(), ['root-one']);
  assert.match((await machine.run()).stderr, /nothing to change/);
  assert.match(
    (await machine.run(['--uninstall'])).stderr,
    /nothing to remove: no store has an entry for http/,
  );
  assert.deepEqual(machine.anchors(), ['own.crt']);
});

test('anchors of other vaults stay, and a damaged anchor is replaced', curl, async (t) => {
  const machine = await trustMachine(t);
  const folder = join(machine.image, systems.debian.anchors);
  const entry = `${entryFor(machine.url, rootNamed('root-one'))}.crt`;
  const port = new URL(machine.url).port;
  const others = [
    `certificate-vault-127.0.0.1-${port}-8443-0123456789abcdef.crt`,
    'certificate-vault-b-443-0123456789abcdef.crt',
  ];
  for (const other of others) cpSync(rootNamed('root-two').certificatePath, join(folder, other));
  writeFileSync(join(folder, entry), rootNamed('root-one').certificatePem.slice(0, 200));
  assert.equal((await machine.run()).code, 0);
  assert.deepEqual(machine.trusted(), ['root-one', 'root-two', 'root-two']);
  assert.equal((await machine.run(['--uninstall'])).code, 0);
  assert.deepEqual(machine.anchors(), others.sort());
});

test('--dry-run changes nothing', curl, async (t) => {
  const machine = await trustMachine(t);
  const dry = await machine.run(['--dry-run']);
  const entry = entryFor(machine.url, rootNamed('root-one'));
  const anchors = join(machine.image, systems.debian.anchors);
  assert.equal(dry.stdout, `would add ${entry}: ${anchors}\nwould run update-ca-certificates\n`);
  assert.deepEqual([machine.anchors(), machine.calls()], [[], []]);
  assertTidy(machine);
});

suite('a change that fails is undone', { concurrency: 2 }, () => {
  const failures = {
    'the command fails': [
      'echo "broken hook" >&2; exit 3',
      12,
      /update-ca-certificates failed; nothing was changed\nbroken hook\n/,
    ],
    'the command ignores the root': [
      'exit 0',
      12,
      /update-ca-certificates did not add the root to .*ca-certificates\.crt/,
    ],
    'the script is interrupted': ['kill -TERM $PPID', 143, /^certificate-vault: root certificate .*\n.*\n$/],
  } as const;
  for (const [title, [body, code, message]] of Object.entries(failures)) {
    test(`a change is undone if ${title}`, curl, async (t) => {
      const machine = await trustMachine(t);
      assert.equal((await machine.run()).code, 0);
      machine.serve = bundleOf(rootNamed('root-two'));
      const before = machine.anchors();
      // Only the first call fails; the next one restores the list.
      const once = `[ -e "${machine.home}/failed" ] || { true >"${machine.home}/failed"; ${body}; exit; }`;
      machine.fake('chroot', `${once}\n${rebuilding(machine.home, systems.debian)}`);
      const failed = await machine.run();
      assert.equal(failed.code, code, failed.stderr);
      assert.match(failed.stderr, message);
      assert.deepEqual([machine.anchors(), machine.trusted()], [before, ['root-one']]);
      assertTidy(machine);
    });
  }
});

test('the next --uninstall completes one that was killed with kill -9', curl, async (t) => {
  const machine = await trustMachine(t);
  assert.equal((await machine.run()).code, 0);
  machine.fake('chroot', 'kill -KILL $PPID');
  const killed = await machine.run(['--uninstall']);
  assert.equal(killed.code, null);
  assert.deepEqual([machine.anchors(), machine.trusted()], [[], ['root-one']]);
  machine.fake('chroot', rebuilding(machine.home, systems.debian));
  const next = await machine.run(['--uninstall']);
  assert.equal(next.code, 0, next.stderr);
  assert.deepEqual(machine.trusted(), []);
  assert.equal(existsSync(join(machine.image, 'var/lib/certificate-vault')), false);
});

test('a run waits up to two minutes for another one', curl, async (t) => {
  const machine = await trustMachine(t);
  const folder = join(machine.image, 'var/lib/certificate-vault');
  const marker = join(folder, 'trust-changing');
  mkdirSync(folder, { recursive: true });
  writeFileSync(marker, `${process.pid}\n`);
  machine.fake('sleep', `echo "sleep $*" >>"${machine.home}/waits"`);
  const busy = await machine.run();
  assert.equal(busy.code, 75, busy.stderr);
  assert.match(
    busy.stderr,
    /another run \(process \d+\) has been changing .* for two minutes; nothing was changed\nTry: /,
  );
  assert.equal(readFileSync(join(machine.home, 'waits'), 'utf8'), 'sleep 1\n'.repeat(120));
  assert.deepEqual([machine.anchors(), machine.calls(), existsSync(marker)], [[], [], true]);
  // Meanwhile the other run adds the root itself.
  const anchor = join(
    machine.image,
    systems.debian.anchors,
    `${entryFor(machine.url, rootNamed('root-one'))}.crt`,
  );
  machine.fake('sleep', `cp "${rootNamed('root-one').certificatePath}" "${anchor}"; rm "${marker}"`);
  const later = await machine.run();
  assert.equal(later.code, 0, later.stderr);
  assert.deepEqual(machine.trusted(), ['root-one']);
  assertTidy(machine);
});

test('an incomplete script does nothing', curl, async (t) => {
  const machine = await trustMachine(t);
  const whole = readFileSync(trustInstaller, 'utf8');
  const half = await machine.run([], { input: whole.slice(0, whole.lastIndexOf('main')) });
  assert.deepEqual([half.code, half.stdout + half.stderr], [0, '']);
  const piped = await machine.run([], { input: whole });
  assert.equal(piped.code, 0, piped.stderr);
  assert.deepEqual(machine.trusted(), ['root-one']);
});

test('an image whose anchor directory links to outside the image is rejected', curl, async (t) => {
  const machine = await trustMachine(t);
  const [anchors, outside] = [join(machine.image, systems.debian.anchors), join(machine.home, 'outside')];
  rmSync(anchors, { recursive: true });
  mkdirSync(outside);
  symlinkSync(outside, anchors);
  const refused = await machine.run();
  assert.equal(refused.code, 12);
  assert.match(
    refused.stderr,
    /cannot write to .*\/ca-certificates; is it read-only, or outside --root\?\n$/,
  );
  assert.deepEqual([readdirSync(outside), machine.requests()], [[], 0]);
});

test(
  'a system without update-ca-certificates or without a known store is rejected with a fix',
  curl,
  async (t) => {
    const machine = await trustMachine(t);
    renameSync(join(machine.image, systems.debian.program), join(machine.image, 'gone'));
    const without = await machine.run();
    assert.equal(without.code, 1);
    assert.match(
      without.stderr,
      /update-ca-certificates is not installed\nFix: install the package ca-certificates\n$/,
    );
    rmSync(join(machine.image, 'usr'), { recursive: true });
    const unknown = await machine.run();
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /the trust store of this system is unknown\.\nTry: --no-system/);
    assert.equal(machine.requests(), 0);
  },
);

const isRoot = process.getuid?.() === 0;

test(
  'the error for a user without root rights suggests sudo',
  isRoot ? needs('setpriv') : { skip: 'only root can become another user' },
  async (t) => {
    const machine = await trustMachine(t);
    chmodSync(machine.home, 0o755);
    const through = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const refused = await machine.run([], {
      through,
      script: enterable(trustInstaller),
      environment: { TMPDIR: '/tmp' },
    });
    assert.equal(refused.code, 12);
    assert.match(refused.stderr, /only root can change the system's trust store\nTry: sudo, or --no-system/);
    assert.equal(machine.requests(), 0);
  },
);
