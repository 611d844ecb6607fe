/** `--watch`: a process keeps a request open at the vault, and runs the job as soon as there is another version. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertPair, finish, shells, withInstallerFunctions } from '../harness/client/installer.ts';
import type { Answer } from '../harness/client/relay.ts';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inEveryPlace, inEveryShell } from './places.ts';
import { held, watched, watching } from './watching.ts';

const curl = needs('curl');

/** What the vault answers to the requests of the watching process, and the pauses that follow. */
type Trouble = {
  readonly name: string;
  readonly answer: (path: string, method: string) => Answer;
  /** The lowest and the highest value of each pause, in seconds. */
  readonly pauses: readonly (readonly [number, number])[];
  readonly message: RegExp;
  /** Requests per pause, on average. */
  readonly requests: number;
};

const answered = (status: number, headers: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  headers,
});

const troubles: readonly Trouble[] = [
  {
    name: 'a vault that responds with errors is asked again ever later, up to a quarter of an hour',
    answer: () => answered(500),
    pauses: [
      [7, 15],
      [15, 30],
      [30, 60],
      [60, 120],
      [120, 240],
      [240, 480],
      [450, 900],
      [450, 900],
    ],
    message: /cannot watch http.*, retrying: unexpected status 500\n/,
    requests: 1,
  },
  {
    name: 'an API key that the vault rejects is not tried more often',
    answer: () => answered(401),
    pauses: [
      [7, 15],
      [15, 30],
    ],
    message: /cannot watch http.*, retrying: 401: the API key is unknown, revoked or expired\n/,
    requests: 1,
  },
  {
    name: 'the pause that an overloaded vault asks for is kept, and spread over clients',
    answer: () => answered(503, { 'Retry-After': '120' }),
    pauses: [
      [155, 190],
      [155, 190],
    ],
    message: /retrying: unexpected status 503\n/,
    requests: 1,
  },
  {
    name: 'a vault cannot stop a client for longer than two hours',
    answer: () => answered(429, { 'Retry-After': '99999' }),
    pauses: [[3600, 7200]],
    message: /retrying: unexpected status 429\n/,
    requests: 1,
  },
  {
    name: 'a vault that holds too many requests is asked again after the time that it names',
    answer: () => answered(304, { 'Retry-After': '60' }),
    pauses: [
      [80, 100],
      [80, 100],
    ],
    message: /watching certificate "web"/,
    requests: 1,
  },
  {
    name: 'a vault that does not hold the request is asked once per waiting time',
    answer: () => answered(304),
    pauses: [
      [150, 300],
      [150, 300],
      [150, 300],
    ],
    message: /watching certificate "web"/,
    requests: 1,
  },
  {
    name: 'an older vault, which rejects the parameter, is asked without it',
    answer: (path) => answered(path.includes('wait=') ? 400 : 304),
    pauses: [
      [450, 900],
      [450, 900],
    ],
    message: /this vault cannot hold requests; looking for a new version every 15 minutes\n/,
    requests: 2,
  },
  {
    name: 'a new version that cannot be installed is not downloaded in a loop',
    answer: (_, method) => answered(method === 'HEAD' ? 200 : 502),
    // Before each run, and after it.
    pauses: [
      [0, 3],
      [7, 15],
      [0, 3],
      [15, 30],
      [0, 3],
      [30, 60],
    ],
    message: /the run did not install the new version \(exit code 10\); retrying in \d+ seconds\n/,
    requests: 1.5,
  },
];

test('a vault in trouble gets few requests', curl, async (t) => {
  const { client, relay } = await watched(t);
  for (const { name, answer, pauses, message, requests } of troubles) {
    await t.test(name, async (inner) => {
      relay.seen.length = 0;
      relay.answer = (path) => answer(path, relay.seen.at(-1)?.method ?? '');
      const watcher = await watching(inner, client, { pauses: pauses.length });
      const taken = await watcher.paused();
      for (const [index, [low, high]] of pauses.entries()) {
        const pause = taken[index] ?? assert.fail(`${taken}`);
        assert(low <= pause && pause <= high, `pause ${index + 1} of ${taken} is not from ${low} to ${high}`);
      }
      assert.equal(relay.seen.length, pauses.length * requests, relay.seen.map(({ path }) => path).join());
      assert.match(watcher.log(), message);
      const { code, stderr } = await watcher.stop();
      assert.equal(code, 143, stderr);
      // Once, not at each attempt.
      assert((stderr.match(/cannot watch|cannot hold/g) ?? []).length <= 1, stderr);
    });
  }
});

inEveryPlace('a watched job is updated when there is a new version', async (t, place) => {
  const { vault, client, relay, installed } = await watched(t, place);
  const [job = ''] = client.jobs();
  const command = `/bin/sh '${client.copy()}' --run ${job} --watch`;
  assert.match(installed.stderr, /let your supervisor keep this running:\n/);
  assert(installed.stderr.includes(command), installed.stderr);
  assert.match(client.crontab(), / --run web-\d+ # /);
  const silent = await client.run(['--status']);
  assert.equal(silent.code, 1);
  assert(silent.stdout.includes(`problem      no process watches the vault; keep this running: ${command}`));
  const watcher = await watching(t, client);
  const first = await held(relay);
  assert.match(relay.seen[first - 1]?.path ?? '', /\/web\/fullchain\.crt\?wait=300$/);
  assert.deepEqual(argumentsWith(vault.key), []);
  const status = await client.run(['--status']);
  assert.equal(status.code, 0, status.stdout);
  assert.match(status.stdout, /\n {2}watch {8}a supervisor\n/);
  const second = await client.run(['--run', job, '--watch'], { script: client.copy() });
  assert.equal(second.code, 75, second.stderr);
  await vault.renew();
  await held(relay, first);
  assertPair(client);
  assert.match(watcher.log(), /version 2 is installed/);
  // The process itself downloads nothing, and the run reports.
  assert.deepEqual(vault.downloads(), [
    'fullchain.crt 1',
    'private.key 1',
    'fullchain.crt 2',
    'private.key 2',
  ]);
  assert.deepEqual(
    relay.seen.filter(({ path }) => path.startsWith('/api/')).map(({ method }) => method),
    ['HEAD', 'GET', 'GET', 'PUT', 'HEAD'],
  );
  const { code, stdout, stderr } = await watcher.stop();
  assert.equal(code, 143, stderr);
  assert.equal((stdout + stderr + client.syslog() + client.crontab()).includes(vault.key), false);
  assert.deepEqual(readdirSync(join(client.home, 'vault', 'state', job, 'watch')), []);
});

/** The processes that have this text in their arguments, which all users can read. */
function argumentsWith(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8')];
      } catch {
        // It has ended.
        return [];
      }
    })
    .filter((line) => line.includes(text));
}

test('after two silent connections that ended early, requests wait half as long', curl, async (t) => {
  const { client, relay } = await watched(t);
  relay.answer = () => answered(504);
  // Each look at the clock is 50 seconds after the one before.
  const clock = join(client.home, 'clock');
  client.fake(
    'date',
    `case $* in +%s) echo x >>"${clock}"; echo $(($(wc -l <"${clock}") * 50)) ;;
    *) PATH="${process.env.PATH}" exec date "$@" ;; esac`,
  );
  const watcher = await watching(t, client, { pauses: 9 });
  const pauses = await watcher.paused();
  const waits = relay.seen.map(({ path }) => Number(/wait=(\d+)$/.exec(path)?.[1]));
  assert.deepEqual(waits, [300, 300, 150, 150, 75, 75, 37, 37, 18]);
  assert(
    pauses.slice(0, -1).every((pause) => pause <= 3),
    `${pauses}`,
  );
  // Shorter waits do not help, so this is an error as others.
  assert(Number(pauses.at(-1)) >= 7, `${pauses}`);
  assert.match(watcher.log(), /no response after 50 seconds; from now on, requests wait for 150 seconds\n/);
  assert.match(watcher.log(), /cannot watch http.*: unexpected status 504\n/);
});

inEveryShell('waits that an outage behind a proxy has shortened grow again', async (t, shell) => {
  const [program, ...options] = shells[shell];
  const script = withInstallerFunctions(
    t,
    `info() { echo "$1"; }
    watch_seconds=300 pause_seconds=3 is_held=yes http_retry_after='' watch_pause=0
    watch_wait=300 watch_shortest=300 watch_cuts=0 watch_held=0 watch_delay=0 watch_failure='' watch_unheld=no
    repeat() { count=0; while [ "$count" -lt "$1" ]; do count=$((count + 1)); "$2"; done; echo "$watch_wait"; }
    is_cut() { http_status=504 watch_elapsed=60; watch_error; }
    is_over() { http_status=304 watch_elapsed=$watch_wait; watch_unchanged; }
    repeat 8 is_cut
    repeat 49 is_over; repeat 1 is_over
    repeat 50 is_over
    # The proxy closes longer ones; a message appears only for the first time.
    repeat 30 is_over; repeat 2 is_cut
    repeat 49 is_over; repeat 1 is_over
    repeat 50 is_over; repeat 50 is_over; repeat 50 is_over; repeat 50 is_over`,
  );
  const { code, stdout, stderr } = await finish(program, [...options, script], { environment: process.env });
  assert.deepEqual([code, stderr], [0, '']);
  const [messages, waits] = [/^no response/, /^\d+$/].map((form) =>
    stdout.split('\n').filter((line) => form.test(line)),
  );
  assert.deepEqual(waits?.map(Number), [18, 18, 36, 72, 72, 36, 36, 72, 144, 288, 300, 300]);
  assert.equal(messages?.length, 4, stdout);
});

test('SIGTERM during a run ends the run in order, and the next process repeats it', curl, async (t) => {
  const { vault, client, relay } = await watched(t);
  const watcher = await watching(t, client);
  await held(relay);
  const before = client.file('tls.crt');
  relay.answer = (path) => (path.endsWith('/private.key?version=2') ? 'hanging' : undefined);
  await vault.renew();
  await eventually('the run downloads the key', () =>
    relay.seen.some(({ path }) => path.includes('private.key')),
  );
  const { code, stderr } = await watcher.stop();
  assert.equal(code, 143, stderr);
  assert.equal(client.file('tls.crt'), before);
  const state = join(client.home, 'vault', 'state', client.jobs()[0] ?? '');
  assert.deepEqual(
    readdirSync(state).filter((name) => /^scratch|lock|swapping/.test(name)),
    [],
  );
  relay.answer = () => undefined;
  relay.seen.length = 0;
  await watching(t, client);
  await eventually('the new version is installed', () => client.state('state').startsWith('2\t'));
  assertPair(client);
});
