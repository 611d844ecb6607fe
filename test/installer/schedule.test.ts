/** Schedules: cron and systemd agree on the same five fields, and clients spread their requests over the day. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertPair, finish, machine, withInstallerFunctions } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { cronMinutes } from './cron.ts';

const schedules = [
  '* * * * *',
  '17 3 * * *',
  '*/15 * * * *',
  '0 */6 * * *',
  '5,35 8-18 * * 1-5',
  '0 0 1 * *',
  '30 4 1,15 * *',
  '0 12 * * 0',
  '0 12 * * 7',
  '0 0 13 * 5',
  '0 0 */2 * 1',
  '59 23 31 12 *',
  '10-50/20 1-3/2 * jan,jul mon-wed',
  '0 5 29 2 *',
  '0 6 * 3-5 sat,sun',
  '15 2 1-7 * 6',
  '@daily',
  '@weekly',
  '@monthly',
  '@yearly',
  '@hourly',
  '0 9 * * 5-7',
  '7 7 * */4 *',
];

/** Converts a schedule with the script's own function, by loading the script without its last line. */
async function calendarOf(t: TestContext, schedule: string): Promise<string[]> {
  const script = withInstallerFunctions(t, 'cron_to_calendar "$1"');
  const { code, stdout } = await finish('sh', [script, schedule], {
    environment: { PATH: process.env.PATH },
  });
  assert.equal(code, 0, `${schedule}: ${stdout}`);
  return stdout.trim().split('\n');
}

for (const schedule of schedules) {
  test(`systemd runs "${schedule}" when cron does`, needs('systemd-analyze'), async (t) => {
    const calendars = await calendarOf(t, schedule);
    const base = '2027-01-30 22:30:00';
    const args = ['calendar', `--base-time=${base} UTC`, '--iterations=40', ...calendars];
    const output = execFileSync('systemd-analyze', args, {
      env: { ...process.env, TZ: 'UTC' },
      encoding: 'utf8',
    });
    const times = [
      ...output.matchAll(/(?:Next elapse|Iteration #\d+|Iter\. #\d+): \w+ ([\d-]+ [\d:]+) UTC/g),
    ];
    // Each calendar is listed separately; up to the earliest end, all lists are complete.
    const perCalendar = calendars.map((_, index) =>
      times.slice(index * 40, index * 40 + 40).map(([, at]) => at ?? ''),
    );
    assert(
      perCalendar.every((list) => list.length === 40),
      output,
    );
    const end = perCalendar.map((list) => list.at(-1) ?? '').sort()[0] ?? '';
    const systemd = [...new Set(perCalendar.flat())].filter((at) => at <= end).sort();
    assert.deepEqual(cronMinutes(schedule, base, systemd.length), systemd);
  });
}

test('an invalid schedule is rejected with the reason', needs('crontab'), async (t) => {
  const client = machine(t);
  const files = ['--file', 'fullchain.crt', '--destination', client.destination];
  const bad = [
    '',
    '* * * *',
    '60 * * * *',
    '* 24 * * *',
    '* * 0 * *',
    '* * * 13 *',
    '* * * * 8',
    '5-1 * * * *',
    '*/0 * * * *',
    '1,,2 * * * *',
    '5/10 * * * *',
    '* * 30 2 *',
    '@reboot',
    'a * * * *',
    '* * * * funday',
    '-1 * * * *',
    '1.5 * * * *',
  ];
  for (const schedule of bad.slice(1)) {
    const args = [
      '--server',
      'https://127.0.0.1:1',
      '--certificate',
      'web',
      ...files,
      '--schedule',
      schedule,
    ];
    const { code, stderr } = await client.run([...args, '--dry-run']);
    assert.equal(code, 2, `${schedule}: ${stderr}`);
    assert.match(stderr, /--schedule: ".*": /);
  }
});

test('without crontab the script installs a valid systemd timer', needs('systemd-analyze'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  const units = join(client.home, 'vault', 'systemd');
  hideCrontab(client);
  client.fake('systemctl', `echo "$*" >>"${client.home}/systemctl"`);
  const installed = await vault.install(client, ['--schedule', '0 0 13 * 5']);
  assert.equal(installed.code, 0, installed.stderr);
  const unit = `certificate-vault-${client.jobs()[0]}`;
  const timer = readFileSync(join(units, `${unit}.timer`), 'utf8');
  assert.match(timer, /^OnCalendar=\*-\*-13 00:00:00\nOnCalendar=Fri \*-\*-\* 00:00:00$/m);
  const verified = execFileSync(
    'systemd-analyze',
    ['verify', '--man=no', join(units, `${unit}.timer`), join(units, `${unit}.service`)],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  assert.equal(verified, '');
  assert.match(
    readFileSync(join(client.home, 'systemctl'), 'utf8'),
    new RegExp(`enable ${unit}.timer\n.* restart ${unit}.timer`),
  );
  assert.equal((await client.run(['--uninstall'])).code, 0);
  assert.equal(existsSync(join(units, `${unit}.timer`)), false);
});

test('with neither crontab nor systemd nothing is left behind', needs('dash'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  hideCrontab(client);
  const installed = await vault.install(client, []);
  assert.equal(installed.code, 1, installed.stderr);
  assert.match(installed.stderr, /neither crontab nor a running systemd/);
  assert.deepEqual([existsSync(join(client.home, 'vault')), existsSync(client.destination)], [false, false]);
});

/** A machine without crontab. The script also searches the standard directories, so its programs are linked by name. */
function hideCrontab(client: ReturnType<typeof machine>): void {
  rmSync(join(client.bin, 'crontab'));
  client.hide('crontab');
}

test('the random times of 200 clients spread over the day', needs('od'), async (t) => {
  const loop = 'count=0; while [ $count -lt 200 ]; do random_schedule; count=$((count + 1)); done';
  const { stdout } = await finish('sh', [withInstallerFunctions(t, loop)], {
    environment: { PATH: process.env.PATH },
  });
  const minutes = stdout
    .trim()
    .split('\n')
    .map((line) => {
      const [, minute, hour] = /^(\d+) (\d+) \* \* \*$/.exec(line) ?? [];
      return Number(hour) * 60 + Number(minute);
    });
  assert.equal(minutes.length, 200);
  assert(minutes.every((minute) => minute >= 0 && minute < 1440));
  const hours = Map.groupBy(minutes, (minute) => Math.floor(minute / 60));
  const sameMinute = Math.max(
    ...[...Map.groupBy(minutes, (minute) => minute).values()].map((all) => all.length),
  );
  assert(hours.size >= 22, `${hours.size} of 24 hours have requests`);
  assert(sameMinute <= 5, `${sameMinute} requests in one minute`);
});

test('replacing a job keeps its random time', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  const before = client.crontab();
  assert.match(before, /^\d+ \d+ \* \* \* /);
  assert.equal((await vault.install(client)).code, 0);
  assert.equal(client.crontab(), before);
});

const cronAsRoot = process.getuid?.() === 0 ? needs('cron') : { skip: 'only root can start cron' };

test('a real cron daemon runs a job within its minute', { ...cronAsRoot, timeout: 300_000 }, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client, ['--schedule', '* * * * *'])).code, 0);
  await vault.renew();
  // The crontab line, with the user field that /etc/cron.d needs, and the fakes in PATH.
  const tab = `/etc/cron.d/vault-test-${process.pid}`;
  const line = client
    .crontab()
    .replace('* * * * * ', `* * * * * root CERTIFICATE_VAULT_HOME=${client.home}/vault `);
  writeFileSync(tab, `PATH=${client.bin}:/usr/bin:/bin\n${line}`, { mode: 0o644 });
  t.after(() => rmSync(tab, { force: true }));
  // If a cron daemon already runs, this one exits at once and the other one runs the job.
  const daemon = spawn('cron', ['-f'], { stdio: 'ignore' });
  const ended = once(daemon, 'close');
  const before = client.file('tls.crt');
  const deadline = Date.now() + 75_000;
  while (client.file('tls.crt') === before && Date.now() < deadline) await sleep(200);
  while (client.state('pending') !== '') await sleep(50);
  daemon.kill();
  await ended;
  assert.notEqual(client.file('tls.crt'), before, `cron exited with code ${daemon.exitCode}`);
  assertPair(client);
});
