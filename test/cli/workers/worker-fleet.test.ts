/** The workers together, as the first process deals with them; here they only say what a test has them say. */
import assert from 'node:assert/strict';
import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { day, second } from '../../../src/base/duration.ts';
import { Fleet } from '../../../src/cli/workers/worker-fleet.ts';
import type { FromWorker, ToWorker } from '../../../src/cli/workers/worker-messages.ts';
import { keptLog, settingsFor } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

class SpokenWorker extends EventEmitter {
  readonly told: ToWorker[] = [];
  isGone = false;
  readonly process: { pid: number | undefined; kill: () => void } = { pid: 1, kill: () => this.end() };

  isConnected(): boolean {
    return !this.isGone;
  }

  send(message: ToWorker): void {
    this.told.push(message);
  }

  say(message: FromWorker): void {
    this.emit('message', message);
  }

  end(): void {
    this.isGone = true;
    this.emit('disconnect');
    this.emit('exit', null, 'SIGKILL');
  }

  lose(): void {
    this.process.pid = undefined;
  }

  heard<K extends ToWorker['do']>(kind: K): Extract<ToWorker, { readonly do: K }>[] {
    return this.told.filter(
      (message): message is Extract<ToWorker, { readonly do: K }> => message.do === kind,
    );
  }
}

/** So many workers that serve. `beforeStart` hears how many were started before. */
function fleetOf(count: number, beforeStart: (count: number) => void = () => undefined) {
  let starts = 0;
  const world = new TestWorld();
  const workers: SpokenWorker[] = [];
  const systemd: string[] = [];
  const fleet = new Fleet({
    settings: { ...settingsFor('/nowhere'), workers: count },
    instance: 'test',
    world,
    log: keptLog(),
    supervisor: {
      watchdogInterval: 1000,
      notify: async (...words) => void systemd.push(words[0] ?? ''),
    },
    startWorker: () => {
      beforeStart(starts++);
      const worker = new SpokenWorker();
      workers.push(worker);
      return worker as unknown as Worker;
    },
  });
  const members = Array.from({ length: count }, (_, index) => fleet.start(index + 1));
  for (const worker of workers) worker.say({ say: 'serving', url: 'http://127.0.0.1:1' });
  const [one, two] = workers;
  assert.ok(one && two);
  return { fleet, members, workers, one, two, world, systemd };
}

test('the jobs go to another worker when the one that has them dies, and to the next that serves if none is left', async () => {
  const { fleet, members, workers, one, two } = fleetOf(2);
  fleet.giveJobs();
  assert.deepEqual([one.heard('jobs').length, two.heard('jobs').length], [1, 0]);
  two.end();
  await members[1]?.ended;
  assert.equal(one.heard('jobs').length, 1);
  one.end();
  await members[0]?.ended;
  fleet.start(1);
  const third = workers[2];
  assert.deepEqual(third?.heard('jobs'), []);
  third?.say({ say: 'serving', url: 'http://127.0.0.1:1' });
  assert.equal(third?.heard('jobs').length, 1);
});

test('a worker that the system does not let start has ended, whether Node says so at once or later', async () => {
  const { fleet, workers } = fleetOf(2, (count) => {
    if (count === 2) throw Object.assign(new Error('spawn ENOMEM'), { code: 'ENOMEM' });
  });
  const atOnce = await fleet.start(1).ended;
  assert.match(atOnce.error.message, /^cannot start worker 1: out of memory$/);
  const later = fleet.start(1);
  const third = workers[2];
  // What a real one does: no `exit` follows, as there was no process.
  third?.lose();
  third?.emit('error', Object.assign(new Error('spawn EAGAIN'), { code: 'EAGAIN' }));
  third?.emit('disconnect');
  const { error, hasServed } = await later.ended;
  assert.deepEqual(
    [error.message, hasServed],
    ['cannot start worker 1: resource temporarily unavailable', false],
  );
  assert(error.hint);
});

test('counts of one worker reach all others, and so does the state of the jobs', async () => {
  const { fleet, one, two } = fleetOf(2);
  fleet.giveJobs();
  one.say({ say: 'beat' });
  one.say({ say: 'taken', taken: [['requests', '7', 3]] });
  assert.deepEqual([one.heard('beat').length, two.heard('beat').length], [0, 1]);
  assert.deepEqual(
    [one.heard('count'), two.heard('count')],
    [[], [{ do: 'count', taken: [['requests', '7', 3]] }]],
  );
  await fleet.firstBeat;
});

test('failing backups are reported to all workers once, including later ones; workers without the jobs report nothing', () => {
  const { fleet, workers, one, two } = fleetOf(2);
  fleet.giveJobs();
  two.say({ say: 'alive', backupsAreFailing: true });
  assert.deepEqual(one.heard('backups'), []);
  for (let time = 0; time < 3; time++) one.say({ say: 'alive', backupsAreFailing: true });
  assert.deepEqual(two.heard('backups'), [{ do: 'backups', areFailing: true }]);
  fleet.start(2);
  workers[2]?.say({ say: 'serving', url: 'http://127.0.0.1:1' });
  assert.deepEqual(workers[2]?.heard('backups'), [{ do: 'backups', areFailing: true }]);
  one.say({ say: 'alive', backupsAreFailing: false });
  assert.deepEqual(two.heard('backups').at(-1), { do: 'backups', areFailing: false });
});

test('systemd hears that all is well when all have said so, what fails, and nothing before they are ready or while one is silent', async () => {
  const { fleet, one, two, systemd } = fleetOf(2);
  for (const worker of [one, two]) worker.say({ say: 'health', failed: [] });
  assert.deepEqual(systemd, []);
  await fleet.notifyReady();
  assert.deepEqual(systemd.splice(0), ['READY=1']);
  for (let time = 0; time < 3; time++) one.say({ say: 'health', failed: [] });
  assert.deepEqual(systemd, []);
  two.say({ say: 'health', failed: [] });
  assert.deepEqual(systemd, ['WATCHDOG=1']);
  one.say({ say: 'health', failed: ['database'] });
  two.say({ say: 'health', failed: ['database', 'master_key'] });
  assert.deepEqual(systemd.slice(1), ['STATUS=not working: database, master_key']);
});

test('a worker that says nothing for twenty seconds is ended, however the clock jumps', async () => {
  const { fleet, one, two, world } = fleetOf(2);
  const over = new AbortController();
  const watching = fleet.watch(over.signal);
  for (let seconds = 0; seconds < 21; seconds++) {
    assert.equal(two.isGone, false);
    one.say({ say: 'alive', backupsAreFailing: false });
    await world.sleeping(1);
    world.advance(seconds === 3 ? day : second);
    await world.turn();
  }
  assert.deepEqual([one.isGone, two.isGone], [false, true]);
  over.abort();
  await watching;
});

test('password attempts are counted across workers, until one succeeds', () => {
  const { one, two } = fleetOf(2);
  let id = 0;
  const attempt = (worker: SpokenWorker) => {
    id += 1;
    worker.say({ say: 'attempt', id, name: 'ada', address: '192.0.2.1', standing: 'stranger' });
    return worker.heard('attempt').at(-1)?.retryAfter;
  };
  const first = [one, two, one, two].map(attempt);
  assert.deepEqual(first, [undefined, undefined, undefined, undefined]);
  assert.equal(attempt(one), undefined);
  assert.equal(attempt(two), 1);
  one.say({ say: 'attempt-ended', id: 5, how: 'succeeded' });
  assert.equal(attempt(two), undefined);
});
