/**
 * `vault serve` on several processes: the first one starts the workers, replaces those that die, gives one of them the jobs,
 * and does as little as possible itself, so that nothing can happen to it.
 */
import { once } from 'node:events';
import { minute, second } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import type { World } from '../../base/world.ts';
import { claimAddresses } from '../../http/server/listeners.ts';
import { supervisorIn } from '../serving/supervisor.ts';
import type { Settings } from '../settings/settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { Fleet } from './worker-fleet.ts';
import type { Member } from './worker-member.ts';
import { sharesPorts, workerStarter } from './worker-process.ts';

/** A worker that has served for so long was well: its successor is started at once. */
const wellAfter = minute;

const longestPause = minute;

/** So many in a row that cannot even begin, while none serves, end the vault. */
const mostRefusals = 3;

/** How long before a worker is started again of which so many in a row have died young: 0, 1, 2, 4, … seconds. */
export function pauseBefore(diedYoung: number): number {
  return diedYoung <= 1 ? 0 : Math.min(longestPause, second * 2 ** Math.min(diedYoung - 2, 30));
}

/** Serves until `stop` is aborted. Throws OperatorError where the workers cannot serve. */
export async function serveOnWorkers(
  given: Settings,
  { world, environment, stdout, version }: Terminal,
  stop: AbortSignal,
  log: Log,
): Promise<void> {
  const supervisor = supervisorIn(environment, log);
  const settings = await claimAddresses(given, { isShared: sharesPorts });
  const startWorker = await workerStarter();
  const fleet = new Fleet({ settings, world, log, supervisor, startWorker });
  const closing = new AbortController();
  const over = new AbortController();
  const watching = fleet.watch(over.signal);
  let places: Promise<void>[] = [];
  try {
    // Alone, so that a vault is made or migrated once, and what is wrong is said once.
    const first = await begun(fleet.start(1), stop);
    const others = Array.from({ length: settings.workers - 1 }, (_, index) => fleet.start(index + 2));
    await Promise.all(others.map((member) => begun(member, stop)));
    if (stop.aborted) return;
    const url = first.url ?? '';
    fleet.giveJobs();
    await Promise.race([fleet.firstBeat, world.sleep(second, stop)]);
    await fleet.invite(settings.publicUrl ?? url);
    const kept = AbortSignal.any([stop, closing.signal]);
    places = [first, ...others].map((member) => keepPlace(fleet, member, { world, log }, kept));
    log.info({ url, version, workers: settings.workers }, 'listening');
    // The log is written once a turn: what stands in it so far comes before the line that others wait for.
    await world.turn();
    stdout.write(`listening on ${url}\n`);
    await fleet.tellReady();
    // A place is given up only where no worker can serve any more.
    await Promise.race([aborted(stop), ...places]);
  } finally {
    log.info({ signal: stop.reason }, 'stopping');
    closing.abort();
    const told = supervisor.tell('STOPPING=1', 'STATUS=stopping');
    await fleet.stop(String(stop.reason ?? 'the vault cannot serve'));
    over.abort();
    await Promise.allSettled([...places, watching, told]);
  }
  log.info({}, 'stopped');
}

/** The member when it serves, or the vault is to stop. Throws OperatorError where it cannot. */
async function begun(member: Member, stop: AbortSignal): Promise<Member> {
  const ending = await Promise.race([member.serving, member.ended]);
  if (ending !== undefined && !stop.aborted) throw ending.error;
  return member;
}

async function aborted(stop: AbortSignal): Promise<void> {
  if (!stop.aborted) await once(stop, 'abort');
}

/** Puts another worker in the place of each that ends. Throws OperatorError where no worker can serve any more. */
async function keepPlace(
  fleet: Fleet,
  first: Member,
  { world, log }: { readonly world: World; readonly log: Log },
  stop: AbortSignal,
): Promise<void> {
  let member = first;
  let diedYoung = 0;
  let refusals = 0;
  for (;;) {
    const began = world.now();
    const { error, hasServed } = await member.ended;
    if (stop.aborted) return;
    diedYoung = hasServed && Math.abs(world.now() - began) >= wellAfter ? 0 : diedYoung + 1;
    refusals = hasServed ? 0 : refusals + 1;
    if (refusals >= mostRefusals && !fleet.serves) throw error;
    const pause = pauseBefore(diedYoung);
    const fields = { worker: member.number, pid: member.pid, reason: error.message, again_in_ms: pause };
    log.error(fields, hasServed ? 'a worker ended; another takes its place' : 'a worker could not begin');
    await world.sleep(pause, stop);
    if (stop.aborted) return;
    member = fleet.start(member.number);
  }
}
