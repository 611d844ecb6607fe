/**
 * `vault serve` with several processes: the primary starts the workers, replaces those that exit and assigns the background
 * jobs to one of them. It does as little as possible itself, so that it does not crash.
 */
import { once } from 'node:events';
import { minute, second } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { claimAddresses } from '../../http/server/listeners.ts';
import type { ServerLog } from '../runtime/log-output.ts';
import { reload, type ServerStart } from '../serving/reload.ts';
import { supervisorIn } from '../serving/supervisor.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { Fleet } from './worker-fleet.ts';
import type { Member } from './worker-member.ts';
import { sharesPorts, workerStarter } from './worker-process.ts';

/** After a worker that served at least this long, the next one starts without a delay. */
const healthyAfter = minute;

const longestDelay = minute;

/** After this many failed starts in a row, with no worker serving, the vault exits. */
const mostFailedStarts = 3;

/** The delay before a restart after this many early exits in a row: 0, 1, 2, 4, … seconds, at most a minute. */
export function restartDelay(earlyExits: number): number {
  return earlyExits <= 1 ? 0 : Math.min(longestDelay, second * 2 ** Math.min(earlyExits - 2, 30));
}

/** Serves until `stop` is aborted. Throws OperatorError if the workers cannot serve. */
export async function serveOnWorkers(
  { settings: given, instance, read, hangups }: ServerStart,
  { world, environment, stdout, version }: Terminal,
  stop: AbortSignal,
  log: ServerLog,
): Promise<void> {
  const supervisor = supervisorIn(environment, log);
  const settings = await claimAddresses(given, { isShared: sharesPorts });
  const startWorker = await workerStarter();
  const fleet = new Fleet({ settings, instance, world, log, supervisor, startWorker });
  const closing = new AbortController();
  const over = new AbortController();
  const watching = fleet.watch(over.signal);
  let places: Promise<void>[] = [];
  try {
    // Start one worker first, so that the vault is created or migrated once and errors are printed once.
    const first = await untilServing(fleet.start(1), stop);
    const others = Array.from({ length: settings.workers - 1 }, (_, index) => fleet.start(index + 2));
    await Promise.all(others.map((member) => untilServing(member, stop)));
    if (stop.aborted) return;
    const url = first.url ?? '';
    fleet.giveJobs();
    await Promise.race([fleet.firstBeat, world.sleep(second, stop)]);
    await fleet.announceSetup(settings.publicUrl ?? url);
    const kept = AbortSignal.any([stop, closing.signal]);
    places = [first, ...others].map((member) => keepRunning(fleet, member, { world, log }, kept));
    log.info({ url, version, workers: settings.workers }, 'listening');
    // The log is flushed once per turn: flush it before printing the line that other programs wait for.
    await world.turn();
    stdout.write(`listening on ${url}\n`);
    await fleet.notifyReady();
    let running = given;
    hangups.onReload(async () => {
      if (stop.aborted) return;
      await reload(running, read, log, (next) => {
        running = next;
        fleet.adopt(next);
      });
    });
    // keepRunning only settles if no worker can serve any more.
    await Promise.race([aborted(stop), ...places]);
  } finally {
    log.info({ signal: stop.reason }, 'stopping');
    closing.abort();
    const notified = supervisor.notify('STOPPING=1', 'STATUS=stopping');
    await fleet.stop(String(stop.reason ?? 'no worker can serve'));
    over.abort();
    await Promise.allSettled([...places, watching, notified]);
  }
  log.info({}, 'stopped');
}

/** Resolves when the worker serves or the vault stops. Throws OperatorError if the worker cannot serve. */
async function untilServing(member: Member, stop: AbortSignal): Promise<Member> {
  const ending = await Promise.race([member.serving, member.ended]);
  if (ending !== undefined && !stop.aborted) throw ending.error;
  return member;
}

async function aborted(stop: AbortSignal): Promise<void> {
  if (!stop.aborted) await once(stop, 'abort');
}

/** Restarts a worker whenever it exits. Throws OperatorError if no worker can serve any more. */
async function keepRunning(
  fleet: Fleet,
  first: Member,
  { world, log }: { readonly world: World; readonly log: Log },
  stop: AbortSignal,
): Promise<void> {
  let member = first;
  let earlyExits = 0;
  let failedStarts = 0;
  for (;;) {
    const began = world.now();
    const { error, hasServed } = await member.ended;
    if (stop.aborted) return;
    earlyExits = hasServed && Math.abs(world.now() - began) >= healthyAfter ? 0 : earlyExits + 1;
    failedStarts = hasServed ? 0 : failedStarts + 1;
    if (failedStarts >= mostFailedStarts && !fleet.serves) throw error;
    const pause = restartDelay(earlyExits);
    const fields = { worker: member.number, pid: member.pid, reason: error.message, again_in_ms: pause };
    log.error(fields, hasServed ? 'worker exited; restarting it' : 'worker failed to start');
    await world.sleep(pause, stop);
    if (stop.aborted) return;
    member = fleet.start(member.number);
  }
}
