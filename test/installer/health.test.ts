/** Problems that --status reports: an overdue run, missing files, a missing schedule. Also the saved proxy settings. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Machine, machine, modeOf, withInstallerFunctions } from '../harness/client/installer.ts';
import { clientVault, usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { cronMinutes } from './cron.ts';
import { inTurnOfShells } from './places.ts';

const curl = needs('curl');

const troubles: readonly [string, RegExp, (client: Machine) => void][] = [
  [
    'a last run before the last two scheduled times',
    /problem {6}the job missed its last two scheduled runs; is cron running\?/,
    (client) => {
      const state = join(client.home, 'vault', 'state', client.jobs()[0] ?? '', 'last-run');
      writeFileSync(state, '2025-01-01T00:00:00Z 0 version 1 is installed\n');
    },
  ],
  [
    'a missing file',
    /problem {6}\S+\/tls\.key is missing; --run restores it/,
    (client) => rmSync(join(client.destination, 'tls.key')),
  ],
  [
    'an altered file',
    /problem {6}\S+\/tls\.crt was changed after it was installed/,
    (client) => writeFileSync(join(client.destination, 'tls.crt'), 'oops\n'),
  ],
  [
    'a missing schedule',
    /problem {6}the schedule is missing in cron; create the job again/,
    (client) => writeFileSync(join(client.home, 'crontab'), '* * * * * true\n'),
  ],
  [
    'a truncated script',
    /problem {6}\S+\/install\.sh is missing or damaged/,
    (client) => writeFileSync(client.copy(), '#!/bin/sh\n'),
  ],
];

inTurnOfShells('--status fails and reports the problem of a job', async (t, shell) => {
  const vault = await clientVault(t);
  const client = machine(t, { shell });
  const install = async () => {
    const installed = await vault.install(client, ['--schedule', '5 4 * * *']);
    assert.equal(installed.code, 0, installed.stderr);
  };
  await install();
  assert.equal((await client.run(['--status'])).code, 0);
  for (const [name, message, make] of troubles) {
    make(client);
    const status = await client.run(['--status']);
    assert.equal(status.code, 1, name);
    assert.match(status.stdout, message);
    await install();
    const well = await client.run(['--status']);
    assert.equal(well.code, 0, `${name}: ${well.stdout}`);
  }
});

const schedules = [
  '* * * * *',
  '17 3 * * *',
  '*/15 * * * *',
  '5,35 8-18 * * 1-5',
  '0 0 1 * *',
  '30 4 1,15 * *',
  '0 12 * * 7',
  '0 0 13 * 5',
  '0 0 */2 * 1',
  '59 23 31 12 *',
  '0 5 29 2 *',
  '15 2 1-7 * 6',
  '@daily',
  '@weekly',
  '@hourly',
];

for (const awk of ['mawk', 'original-awk', 'busybox']) {
  test(`a run is overdue an hour after the second to last scheduled time, with ${awk}`, needs(awk), (t) => {
    const program = awk === 'busybox' ? 'busybox awk' : awk;
    const script = `
      awk() { ${program} "$@"; }
      while IFS='|' read -r schedule local utc last; do cron_to_calendar "$schedule" "$local" "$utc" "$last"; done`;
    const at = (time: number) => new Date(time).toISOString().slice(0, 19);
    const rows: string[] = [];
    const wanted: string[] = [];
    for (const schedule of schedules) {
      for (const base of ['2027-02-27 22:30:00', '2028-12-30 11:11:00']) {
        const times = cronMinutes(schedule, base, 2).map((time) => Date.parse(`${time.replace(' ', 'T')}Z`));
        const [one = 0, two = 0] = times;
        // Now is 30 seconds after the second time; local time is two hours ahead of UTC.
        const [now, zone] = [two + 30_000, 2 * 3_600_000];
        for (const [late, verdict] of [
          [-1000, 'overdue'],
          [1000, 'in time'],
        ] as const) {
          const last = one - 3_600_000 - zone + late;
          rows.push(`${schedule}|${at(now)}|${at(now - zone)}|${at(last)}Z\n`);
          wanted.push(verdict);
        }
      }
    }
    const output = execFileSync('sh', [withInstallerFunctions(t, script)], {
      input: rows.join(''),
      encoding: 'utf8',
    });
    assert.deepEqual(output.trim().split('\n'), wanted);
  });
}

/** A job that reaches the vault only through a proxy, which it uses for every host that is not loopback by name. */
async function proxied(t: TestContext, client: Machine, tool: 'curl' | 'wget'): Promise<void> {
  const vault = await clientVault(t, { tool });
  const proxy = await vault.relay();
  const url = `${proxy.url.replace('http://', 'http://me:pass-word@')}`;
  const server = vault.url.replace('127.0.0.1', '0.0.0.0');
  const args = ['--server', server, '--allow-http', ...usual(client)];
  const reload = `env >${client.home}/reload-environment`;
  const environment = { SERVICE_API_KEY: vault.key, http_proxy: url, no_proxy: 'example.test' };
  const installed = await client.run([...args, '--reload-command', reload], { environment });
  assert.equal(installed.code, 0, installed.stderr);
  assert.equal(proxy.seen.length, 3, 'two files and the report');
  // Cron runs it without these variables.
  const run = await client.run(['--run'], { script: client.copy() });
  assert.equal(run.code, 0, run.stderr);
  assert.equal(proxy.seen.length, 5);
  assert.equal(proxy.seen.at(-1)?.headers['proxy-authorization'], `Basic ${btoa('me:pass-word')}`);
  assert.equal(modeOf(join(client.copy(), '..', 'job')), 0o600);
  const status = await client.run(['--status']);
  assert.equal(status.code, 0, status.stdout);
  assert.match(
    status.stdout,
    / {2}proxies {6}http_proxy=http:\/\/127\.0\.0\.1:\d+\/? no_proxy=example\.test/,
  );
  for (const shown of [status.stdout, installed.stderr, client.syslog()])
    assert.doesNotMatch(shown, /pass-word/);
  assert.doesNotMatch(readFileSync(join(client.home, 'reload-environment'), 'utf8'), /proxy/);
}

for (const tool of ['curl', 'wget'] as const) {
  test(`later runs use the proxies of the installing shell, with ${tool}`, needs(tool), (t) =>
    proxied(t, machine(t, { tool }), tool),
  );
}

test('a job of version 0.1.0 still works', curl, async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  const path = join(client.copy(), '..', 'job');
  const old = readFileSync(path, 'utf8')
    .replace(/^format=2\n/, '')
    .replace(/\nend=job\n$/, '\n');
  writeFileSync(path, old);
  assert.equal((await client.run(['--run'])).code, 0);
  assert.equal((await client.run(['--status'])).code, 0);
});
