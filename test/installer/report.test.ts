/** Reports of jobs to the vault: when they are sent, what they contain, and that none changes the result of a run. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { finish, machine, withInstallerFunctions } from '../harness/client/installer.ts';
import type { Answer, Seen } from '../harness/client/relay.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { cronMinutes } from './cron.ts';
import { inEveryPlace, inTurnOfPlaces, type Place } from './places.ts';

const curl = needs('curl');

type Step = { readonly result: string; readonly output: string | null } | null;

type Report = {
  readonly host: string;
  readonly job: string;
  readonly destination: string;
  readonly version: number | null;
  readonly fingerprint_sha256: string | null;
  readonly reload: Step;
  readonly verify: Step;
  readonly error: string | null;
  readonly next_run_at: string;
  readonly client_version: string | null;
};

/** A job whose requests go through a relay, and what it reported. */
async function reporting(t: TestContext, options: readonly string[] = [], place: Partial<Place> = {}) {
  const vault = await clientVault(t, place);
  const client = machine(t, place);
  const relay = await vault.relay();
  let answer: Answer;
  relay.answer = (path) => (path.includes('/deployments/') ? answer : undefined);
  const take = () => relay.seen.splice(0);
  const install = async (environment: Readonly<Record<string, string>> = {}) => {
    const args = ['--server', relay.url, '--schedule', '17 3 * * *', ...options];
    const installed = await vault.install(client, args, { environment });
    return { ...installed, requests: take() };
  };
  const run = async (environment: Readonly<Record<string, string>> = {}) => {
    const [job = ''] = client.jobs();
    const ended = await client.run(['--run', job], { script: client.copy(), environment });
    return { ...ended, requests: take() };
  };
  const job = () => client.jobs()[0] ?? '';
  const uninstall = async (environment: Readonly<Record<string, string>> = {}) => {
    const ended = await client.run(['--uninstall'], { script: client.copy(), environment });
    return { ...ended, requests: take() };
  };
  return {
    ...{ vault, client, install, run, uninstall, job },
    answerReports: (next: Answer) => {
      answer = next;
    },
  };
}

const reportsIn = (requests: readonly Seen[]) =>
  requests
    .filter(({ path }) => path.includes('/deployments/'))
    .map(({ body }) => JSON.parse(body.toString()) as Report);

/** The only report of a run. */
function theReport({ requests }: { readonly requests: readonly Seen[] }): Report {
  const [report = assert.fail('no report'), ...others] = reportsIn(requests);
  assert.deepEqual(others, []);
  return report;
}

inEveryPlace('a job reports each change, and is current in the vault', async (t, place) => {
  const { vault, client, install, run, job } = await reporting(t, [], place);
  const installed = await install();
  assert.equal(installed.code, 0, installed.stderr);
  const report = theReport(installed);
  const certificate = new X509Certificate(client.file('tls.crt'));
  assert.deepEqual(
    { ...report, next_run_at: '' },
    {
      host: hostname(),
      job: job(),
      destination: client.destination,
      version: 1,
      fingerprint_sha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
      reload: null,
      verify: null,
      error: null,
      next_run_at: '',
      client_version: null,
    },
  );
  const put = installed.requests.find(({ method }) => method === 'PUT');
  assert.match(put?.path ?? '', new RegExp(`^/api/v1/certificates/web/deployments/${job()}\\.\\d+$`));
  assert.equal(put?.headers['content-type'], 'application/json');

  const unchanged = await run();
  assert.deepEqual([unchanged.code, unchanged.stderr], [0, '']);
  assert.deepEqual(
    unchanged.requests.filter(({ path }) => path.startsWith('/api/')).map(({ method }) => method),
    ['GET', 'GET'],
    'one request per file',
  );

  await vault.renew();
  assert.equal(theReport(await run()).version, 2);
  const [shown, ...others] = JSON.parse(await vault.command('fleet', 'status', '--json'));
  assert.deepEqual(others, []);
  const { certificate: name, host, version, state } = shown;
  assert.deepEqual([name, host, shown.job, version, state], ['web', hostname(), job(), 2, 'current']);
});

inEveryPlace('a job reports a failed reload with its last line, and then that it works', async (t, place) => {
  const { vault, client, install, run } = await reporting(t, ['--reload-command', 'exec reload-it'], place);
  const line = String.raw`a "quoted" \ line with $(id) and \n`;
  writeFileSync(join(client.home, 'said'), `first\n${line}\u0001\u001b[0m ünd\n \n`);
  client.fake('reload-it', `cat "${client.home}/said"; exit 3`);
  const installed = await install();
  assert.equal(installed.code, 13, installed.stderr);
  const report = theReport(installed);
  assert.deepEqual(report.reload, { result: 'failed', output: `${line}[0m ??nd` });
  assert.deepEqual([report.version, report.error], [1, null]);
  client.fake('reload-it', 'echo done');
  const worked = await run();
  assert.equal(worked.code, 0, worked.stderr);
  assert.deepEqual(theReport(worked).reload, { result: 'ok', output: 'done' });
  assert.deepEqual(reportsIn((await run()).requests), []);
  await vault.command('fleet', 'status');
});

test('a failed verification is reported, and what the last reload said', needs('openssl'), async (t) => {
  const options = ['--reload-command', 'echo reloaded', '--verify', '127.0.0.1:9'];
  const { install } = await reporting(t, options);
  const installed = await install({ CERTIFICATE_VAULT_VERIFY_TRIES: '1' });
  assert.equal(installed.code, 14, installed.stderr);
  const report = theReport(installed);
  assert.deepEqual(report.reload, { result: 'ok', output: 'reloaded' });
  assert.deepEqual(report.verify, {
    result: 'failed',
    output: '127.0.0.1:9 is unreachable or does not speak TLS',
  });
});

test(
  'a run that fails before the reload is reported with its message, and then that it works',
  curl,
  async (t) => {
    const { client, install, run } = await reporting(t);
    assert.equal((await install()).code, 0);
    const copy = client.copy();
    const whole = readFileSync(copy, 'utf8');
    // As if the destination could not be written.
    writeFileSync(
      copy,
      whole.replace('\nfind_changes() {\n', '\nfind_changes() {\n  fail "$exit_write" "no \\"room\\""\n'),
    );
    const failed = await run();
    assert.equal(failed.code, 12, failed.stderr);
    assert.equal(theReport(failed).error, 'no "room"');
    writeFileSync(copy, whole);
    assert.equal(theReport(await run()).error, null);
  },
);

test('a first download that fails is not reported', curl, async (t) => {
  const { install, client } = await reporting(t, ['--certificate', 'missing']);
  const installed = await install();
  assert.equal(installed.code, 10, installed.stderr);
  assert.deepEqual(reportsIn(installed.requests), []);
  assert.deepEqual(client.jobs(), []);
});

const lost: readonly (readonly [what: string, answer: Answer])[] = [
  ['that the vault cannot store', { status: 503, body: 'no' }],
  ['that comes too often', { status: 429 }],
  ['whose response never comes', 'hanging'],
];
for (const [what, answer] of lost) {
  inEveryPlace(`a report ${what} fails no run and is sent with the next`, async (t, place) => {
    const { install, run, answerReports } = await reporting(t, [], place);
    answerReports(answer);
    const installed = await install({ CERTIFICATE_VAULT_CONNECT_SECONDS: '2' });
    assert.equal(installed.code, 0, installed.stderr);
    assert.equal(reportsIn(installed.requests).length, 1);
    const again = await run({ CERTIFICATE_VAULT_CONNECT_SECONDS: '2' });
    assert.deepEqual([again.code, again.stderr, reportsIn(again.requests).length], [0, '', 1]);
    answerReports(undefined);
    assert.equal(theReport(await run()).version, 1);
    assert.deepEqual(reportsIn((await run()).requests), []);
  });
}

test('a vault that takes no reports gets one a day', curl, async (t) => {
  const { install, run, answerReports } = await reporting(t);
  answerReports({
    status: 404,
    body: '{"status":404,"code":"not_found","detail":"Nothing found at this path."}',
  });
  const installed = await install();
  assert.equal(installed.code, 0, installed.stderr);
  assert.equal(reportsIn(installed.requests).length, 1);
  const again = await run();
  assert.deepEqual([again.code, again.stderr, reportsIn(again.requests)], [0, '', []]);
});

test(
  'a run reports once a day, although nothing changed, with the results of the last reload',
  curl,
  async (t) => {
    const { client, install, run, job } = await reporting(t, ['--reload-command', 'echo reloaded']);
    await install();
    const path = join(client.home, 'vault/state', job(), 'reported');
    const reportedBefore = (hours: number) =>
      writeFileSync(path, `${new Date(Date.now() - hours * 3_600_000).toISOString().slice(0, 19)} 0\n`);
    reportedBefore(19);
    assert.deepEqual(reportsIn((await run()).requests), []);
    reportedBefore(21);
    assert.deepEqual(theReport(await run()).reload, { result: 'ok', output: 'reloaded' });
    assert.deepEqual(reportsIn((await run()).requests), []);
    // The clock was set back.
    reportedBefore(-9);
    assert.equal(theReport(await run()).version, 1);
  },
);

test('a job that runs less than daily reports each run', curl, async (t) => {
  const { install, run } = await reporting(t, ['--schedule', '@yearly']);
  await install();
  const { next_run_at: next } = theReport(await run());
  assert.match(next, /^\d{4}-01-01T|^\d{4}-12-31T/);
});

test('the served script reports the version of the vault that served it', curl, async (t) => {
  const { vault, client, run, answerReports } = await reporting(t);
  answerReports(undefined);
  const served = join(client.home, 'served.sh');
  writeFileSync(served, await (await vault.get('/client/install.sh')).text(), { mode: 0o755 });
  const installed = await vault.install(client, [], { script: served });
  assert.equal(installed.code, 0, installed.stderr);
  assert.match(readFileSync(client.copy(), 'utf8'), /\nclient_version='[^']+'\n/);
  await run();
  await vault.command('fleet', 'status');
});

inEveryPlace('a report keeps the API key out of the arguments of all programs', async (t, place) => {
  const { vault, client, install } = await reporting(t, [], place);
  const program = place.tool.startsWith('nc') ? 'nc' : place.tool;
  const real =
    place.tool === 'nc'
      ? 'busybox nc'
      : place.tool === 'nc.openbsd'
        ? 'nc.openbsd'
        : `/usr/bin/${place.tool}`;
  client.fake(program, `printf '%s\\n' "$@" >>"${client.home}/arguments"; exec ${real} "$@"`);
  const installed = await install();
  assert.equal(installed.code, 0, installed.stderr);
  assert.equal(reportsIn(installed.requests).length, 1);
  const all = readFileSync(join(client.home, 'arguments'), 'utf8');
  assert.equal(all.includes(vault.key), false);
});

inEveryPlace('--uninstall deletes the job from the list of the vault', async (t, place) => {
  const { vault, client, install, uninstall, job } = await reporting(t, [], place);
  assert.equal((await install()).code, 0);
  const id = job();
  const listed = async () => JSON.parse(await vault.command('fleet', 'status', '--json')) as unknown[];
  assert.equal((await listed()).length, 1);
  const removed = await uninstall();
  assert.equal(removed.code, 0, removed.stderr);
  assert.doesNotMatch(removed.stderr, /still lists/);
  assert.deepEqual(
    removed.requests.map(({ method, path }) => `${method} ${path.replace(/\.\d+$/, '')}`),
    [`DELETE /api/v1/certificates/web/deployments/${id}`],
  );
  assert.deepEqual(await listed(), []);
  assert.deepEqual(client.jobs(), []);
});

const unwilling: readonly (readonly [what: string, answer: Answer, says: RegExp | undefined])[] = [
  ['that is too old for it', { status: 404, body: '{"code":"not_found"}' }, undefined],
  ['that does not know the method', { status: 405 }, /still lists the job.*status 405/],
  ['that refuses it', { status: 403 }, /still lists the job.*status 403/],
  ['that fails', { status: 503, body: 'no' }, /still lists the job.*status 503/],
  ['that never responds', 'hanging', /still lists the job/],
];
for (const [what, answer, says] of unwilling) {
  inTurnOfPlaces(
    `--uninstall removes the job although it was reported to a vault ${what}`,
    async (t, place) => {
      const { client, install, uninstall, answerReports } = await reporting(t, [], place);
      assert.equal((await install()).code, 0);
      answerReports(answer);
      const removed = await uninstall({ CERTIFICATE_VAULT_CONNECT_SECONDS: '2' });
      assert.equal(removed.code, 0, removed.stderr);
      assert.deepEqual(client.jobs(), []);
      assert.equal(client.crontab().includes('web-'), false);
      if (says === undefined) assert.doesNotMatch(removed.stderr, /still lists/);
      else {
        assert.match(removed.stderr, says);
        assert.ok(removed.stderr.includes(`vault fleet forget --certificate web --host ${hostname()}`));
      }
    },
  );
}

inTurnOfPlaces('--uninstall removes the job although the vault is gone', async (t, place) => {
  const { vault, client, install, uninstall } = await reporting(t, [], place);
  assert.equal((await install()).code, 0);
  await vault.stop();
  const removed = await uninstall({ CERTIFICATE_VAULT_CONNECT_SECONDS: '2' });
  assert.equal(removed.code, 0, removed.stderr);
  assert.match(removed.stderr, /still lists the job/);
  assert.deepEqual(client.jobs(), []);
});

test('--uninstall without the key of the job removes it and asks the vault nothing', curl, async (t) => {
  const { client, install, uninstall, job } = await reporting(t);
  assert.equal((await install()).code, 0);
  rmSync(join(client.home, 'vault/jobs', job(), 'api-key'));
  const removed = await uninstall();
  assert.equal(removed.code, 0, removed.stderr);
  assert.deepEqual(removed.requests, []);
  assert.deepEqual(client.jobs(), []);
});

const bases = ['2027-01-30T22:30:10', '2028-02-28T23:59:59', '2027-12-31T03:17:00', '2096-02-29T12:00:00'];

test('the next run is the one of cron, in UTC, for each schedule', async (t) => {
  const schedules = [
    ...['* * * * *', '17 3 * * *', '*/15 8-18 * * 1-5', '0 0 1 * *', '30 4 1,15 * *', '0 12 * * 7'],
    ...['0 0 13 * 5', '59 23 31 12 *', '0 5 29 2 *', '@daily', '@weekly', '@yearly', '@hourly'],
  ];
  const script = withInstallerFunctions(t, 'cron_to_calendar "$1" "$2" "$3" "" "$4"');
  const next = async (schedule: string, local: string, utc: string, reported: string) => {
    const { stdout } = await finish('sh', [script, schedule, local, utc, reported], {
      environment: { PATH: process.env.PATH },
    });
    return stdout.trim();
  };
  for (const schedule of schedules) {
    for (const base of bases) {
      // Cron starts a job at the beginning of the minute, so the minute of the base itself is over.
      const [first = ''] = cronMinutes(schedule, `${base.slice(0, 16).replace('T', ' ')}:00`, 1);
      const [shown] = (await next(schedule, base, base, '')).split(' ');
      assert.equal(shown, `${first.replace(' ', 'T')}Z`, `${schedule} after ${base}`);
    }
  }
  // Local time is two hours ahead of UTC.
  assert.equal(
    await next('0 3 * * *', '2027-06-01T01:00:00', '2027-05-31T23:00:00', '2027-05-31T22:00:00'),
    '2027-06-01T01:00:00Z sent',
  );
});
