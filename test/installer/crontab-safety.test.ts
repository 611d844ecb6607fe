/**
 * The crontab belongs to its user: whatever fails on the way, the lines of others stay as they are, byte for byte, and a
 * job whose schedule cannot be removed keeps its script. The same for systemd's units.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Machine, machine } from '../harness/client-installer.ts';
import { inEveryShell } from '../harness/client-places.ts';
import { type ClientVault, clientVault } from '../harness/client-vault.ts';
import { needs } from '../harness/missing-program.ts';

const others = Array.from({ length: 400 }, (_, at) => `${at % 60} 4 * * * /usr/bin/job-${at} 'ä\\ %' # keep`);

/** A job beside 400 lines of other programs, the last without a line break where that is asked for. */
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

/** The job, its script and the crontab are as they were. */
function assertKept(client: Machine, before: string, job: string): void {
  assert.deepEqual(client.jobs(), [job]);
  assert(existsSync(client.copy(job)));
  assert.equal(client.crontab(), before);
}

if (process.getuid?.() === 0) {
  inEveryShell('a full disk for temporary files never cuts the crontab', async (t, shell) => {
    // Hooks run in the order in which they are added: this one before the directory is removed.
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
    // Room for a part of the copy; and all of the disk, as soon as a program looks for it.
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
  test('a full disk for temporary files never cuts the crontab', {
    skip: 'only root can mount file systems',
  });

inEveryShell('a crontab that is not kept as it was given is put back', async (t, shell) => {
  const client = machine(t, { shell });
  const { vault, before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  const tab = join(client.home, 'crontab');
  const list = `case $1 in -l) exec cat "${tab}" ;; esac`;
  // Once it stores half of it and says nothing, once half of it with an error, and then what it gets.
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
      assert.match(outcome.stderr, /crontab does not take the new crontab \(code [01]\); it is as it was/);
      assertKept(client, before, job);
    }
  }
  // It never keeps it whole: the copy is kept where the message says.
  client.fake('crontab', `${list}; head -c 9000 "$1" >"${tab}"`);
  const lost = await client.run(['--uninstall']);
  assert.equal(lost.code, 1);
  const copy = /it is in (\S+)/.exec(lost.stderr)?.[1] ?? '';
  assert.equal(readFileSync(copy, 'utf8'), before);
});

test('lines of others keep every byte, also a last line without its end', needs('curl'), async (t) => {
  const client = machine(t);
  const odd = '1 1 * * * printf "\\t\u0001"  \n\n#\tcertificate-vault\n2 2 * * * true';
  writeFileSync(join(client.home, 'crontab'), odd);
  const vault = await clientVault(t);
  assert.equal((await vault.install(client)).code, 0);
  assert.equal(client.crontab().slice(0, odd.length), odd);
  assert.equal((await client.run(['--uninstall'])).code, 0);
  assert.equal(client.crontab(), `${odd}\n`);
});

test('systems whose crontab shows lines of its own are served as well', needs('curl'), async (t) => {
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

inEveryShell('a job whose schedule cannot be removed says so and keeps its script', async (t, shell) => {
  const client = machine(t, { shell });
  const { before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  const list = `case $1 in -l) exec cat "${client.home}/crontab" ;; esac`;
  client.fake('crontab', `${list}; echo "crontab: not allowed" >&2; exit 1`);
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot remove the schedule \(cron\), so the job and its script stay in /);
  assertKept(client, before, job);
});

test('without its crontab program a job of cron is not removed', needs('dash'), async (t) => {
  const client = machine(t);
  const { before } = await amongOthers(t, client);
  const [job = ''] = client.jobs();
  rmSync(join(client.bin, 'crontab'));
  client.hide('crontab');
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1, refused.stderr);
  assert.match(refused.stderr, /no crontab program .*install cron again/);
  assertKept(client, before, job);
});

/** A machine that has systemd and no cron; systemctl fails for what `refuses` matches. */
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

test('a re-installation that systemd refuses keeps the timer of the job before', needs('curl'), async (t) => {
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

test('a timer that systemd does not let go keeps its job', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = withSystemd(t);
  assert.equal((await vault.install(client)).code, 0);
  client.fake('systemctl', 'case "$*" in *disable*) exit 1 ;; esac');
  const refused = await client.run(['--uninstall']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /cannot remove the schedule \(systemd\)/);
  assert(existsSync(client.copy()));
});

test('units are written where they belong, so that SELinux labels them', needs('curl'), async (t) => {
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
