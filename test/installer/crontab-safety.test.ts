/**
 * The crontab belongs to its user: whichever step fails, the other lines stay unchanged, byte for byte, and a job whose
 * schedule cannot be removed keeps its script. The same holds for systemd units.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Machine, machine } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const others = Array.from({ length: 400 }, (_, at) => `${at % 60} 4 * * * /usr/bin/job-${at} 'ä\\ %' # keep`);

/** A job in a crontab with 400 other lines; `end` is the end of the last line. */
async function amongOthers(
  t: TestContext,
  client: Machine,
  end = '\n',
): Promise<{ vault: ClientVault; before: string }> {
  const vault = await clientVault(t);
  writeFileSync(join(client.home, 'crontab'), others.join('\n') + end);
  const installed = await vault.install(client, ['--schedule', '5 4 * * *']);
  assert.equal(installed.code, 0, installed.stderr);
  return { vault, before: client.crontab() };
}

/** Asserts that the job, its script and the crontab are unchanged. */
function assertKept(client: Machine, before: string, job: string): void {
  assert.deepEqual(client.jobs(), [job]);
  assert(existsSync(client.copy(job)));
  assert.equal(client.crontab(), before);
}

if (process.getuid?.() === 0) {
  inTurnOfShells('a full disk for temporary files never truncates the crontab', async (t, shell) => {
    // Hooks run in the order in which they are added, so this one runs before the directory is removed.
    let mounted = '';
    t.after(() => mounted !== '' && execFileSync('umount', [mounted]));
    const client = machine(t, { shell });
    const { before } = await amongOthers(t, client);
    const [job = ''] = client.jobs();
    const small = join(client.home, 'small');
    mkdirSync(small);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0755', 'tmpfs', small]);
    mounted = small;
    const filler = join(small, 'filler');
    const environment = { TMPDIR: small };
    // The disk has room for a part of the copy, until the named program runs and frees all of it.
    for (const [room, program] of [
      [0, 'none'],
      [8, 'none'],
      [8, 'awk'],
      [8, 'cksum'],
    ] as const) {
      writeFileSync(filler, Buffer.alloc((64 - room) * 1024));
      client.fake(program, `rm -f "${filler}"; PATH=${process.env.PATH} exec ${program} "$@"`);
      const outcome = await client.run(['--uninstall'], { environment });
      assert.notEqual(outcome.code, 0, `${room} kB, ${program}: ${outcome.stderr}`);
      assertKept(client, before, job);
      rmSync(join(client.bin, program));
      rmSync(filler, { force: true });
    }
    assert.equal((await client.run(['--uninstall'], { environment })).code, 0);
    assert.equal(client.crontab(), `${others.join('\n')}\n`);
  });
} else
  test('a full disk for temporary files never truncates the crontab', {
    skip: 'only root can mount file systems',
  });

inTurnOfShells('the old crontab is restored if crontab stores the new one incompletely', async (t, shell) => {
  const client = machine(t, { shell });
  const { vault, before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  const tab = join(client.home, 'crontab');
  const list = `case $1 in -l) exec cat "${tab}" ;; esac`;
  // The first call stores half, without or with an error; later calls store everything.
  for (const answer of ['exit 0', 'exit 1']) {
    client.fake(
      'crontab',
      `${list}
      if [ -e "${client.home}/cut" ]; then cat "$1" >"${tab}"; exit; fi
      : >"${client.home}/cut"; head -c 9000 "$1" >"${tab}"; ${answer}`,
    );
    for (const args of [['--uninstall'], ['install']]) {
      rmSync(join(client.home, 'cut'), { force: true });
      const schedule = ['--schedule', '6 6 * * *'];
      const outcome = await (args[0] === 'install' ? vault.install(client, schedule) : client.run(args));
      assert.equal(outcome.code, 1, outcome.stderr);
      assert.match(
        outcome.stderr,
        /crontab rejected the new crontab \(exit code [01]\); the old one is unchanged/,
      );
      assertKept(client, before, job);
    }
  }
  // Every call stores half: a copy of the old crontab is kept where the message says.
  client.fake('crontab', `${list}; head -c 9000 "$1" >"${tab}"`);
  const lost = await client.run(['--uninstall']);
  assert.equal(lost.code, 1);
  const copy = /a copy is in (\S+)/.exec(lost.stderr)?.[1] ?? '';
  assert.equal(readFileSync(copy, 'utf8'), before);
});

test('other lines keep every byte, including a last line without a line break', needs('curl'), async (t) => {
  const client = machine(t);
  const odd = '1 1 * * * printf "\\t\u0001"  \n\n#\tcertificate-vault\n2 2 * * * true';
  writeFileSync(join(client.home, 'crontab'), odd);
  const vault = await clientVault(t);
  assert.equal((await vault.install(client)).code, 0);
  assert.equal(client.crontab().slice(0, odd.length), odd);
  assert.equal((await client.run(['--uninstall'])).code, 0);
  assert.equal(client.crontab(), `${odd}\n`);
});

test('a header that crontab -l adds on some systems is ignored', needs('curl'), async (t) => {
  const client = machine(t);
  const tab = join(client.home, 'crontab');
  const head =
    '# DO NOT EDIT THIS FILE - edit the master and reinstall.\\n# (x installed on Mon)\\n# (Cron version V5.0)\\n';
  client.fake(
    'crontab',
    `case $1 in -l) exec cat "${tab}" ;; esac; { printf '${head}'; cat "$1"; } >"${tab}"`,
  );
  const { vault } = await amongOthers(t, client);
  assert.equal((await vault.install(client, ['--schedule', '7 7 * * *'])).code, 0);
  assert.match(client.crontab(), /\n7 7 \* \* \* .*\n$/);
});

inTurnOfShells('a job whose schedule cannot be removed reports it and keeps its script', async (t, shell) => {
  const client = machine(t, { shell });
  const { before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  const list = `case $1 in -l) exec cat "${client.home}/crontab" ;; esac`;
  client.fake('crontab', `${list}; echo "crontab: not allowed" >&2; exit 1`);
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot remove the schedule \(cron\); the job stays in /);
  assertKept(client, before, job);
});

test('a cron job is not removed without the crontab program', needs('dash'), async (t) => {
  const client = machine(t);
  const { before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  rmSync(join(client.bin, 'crontab'));
  client.hide('crontab');
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /without the crontab program; install cron again/);
  assertKept(client, before, job);
});

/** A machine with systemd and without cron; systemctl fails for arguments that match `refuses`. */
function withSystemd(t: TestContext, refuses = 'nothing'): Machine {
  const client = machine(t);
  rmSync(join(client.bin, 'crontab'));
  client.hide('crontab');
  client.fake(
    'systemctl',
    `echo "$*" >>"${client.home}/systemctl"; case "$*" in *${refuses}*) exit 1 ;; esac`,
  );
  return client;
}

test('a reinstallation that systemd rejects keeps the old timer', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = withSystemd(t);
  assert.equal((await vault.install(client, ['--schedule', '5 4 * * *'])).code, 0);
  const unit = join(client.home, 'vault', 'systemd', `certificate-vault-${client.jobs()[0]}`);
  const units = () => ['service', 'timer'].map((part) => readFileSync(`${unit}.${part}`, 'utf8'));
  const before = units();
  client.fake('systemctl', 'case "$*" in *daemon-reload*) exit 1 ;; esac');
  const failed = await vault.install(client, ['--schedule', '6 6 * * *']);
  assert.equal(failed.code, 1, failed.stderr);
  assert.deepEqual(units(), before);
  client.fake('systemctl', 'exit 0');
  assert.equal((await client.run(['--status'])).code, 0);
});

test('a job stays if systemd fails to disable its timer', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = withSystemd(t);
  assert.equal((await vault.install(client)).code, 0);
  client.fake('systemctl', 'case "$*" in *disable*) exit 1 ;; esac');
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot remove the schedule \(systemd\)/);
  assert(existsSync(client.copy()));
});

test('units are written in their final directory, so that SELinux labels them', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = withSystemd(t);
  client.fake('mv', `echo "$*" >>"${client.home}/moved"; exec /bin/mv "$@"`);
  assert.equal((await vault.install(client)).code, 0);
  const moved = readFileSync(join(client.home, 'moved'), 'utf8').split('\n');
  const units = moved.filter((line) => /\.(service|timer)$/.test(line));
  assert.equal(units.length, 2);
  const folder = join(client.home, 'vault', 'systemd');
  for (const line of units) assert.match(line, new RegExp(`^-f ${folder}/\\S+ ${folder}/\\S+$`));
});
