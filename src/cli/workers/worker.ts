/** One of several processes that serve a vault: it does what the first process says, and tells it how it is. */
import { once } from 'node:events';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import type { ReadinessContext } from '../../domain/doctor/readiness.ts';
import { beginServing, endServing } from '../../domain/presence/served-vault.ts';
import { runWatchdog } from '../../jobs/watchdog.ts';
import { openLog } from '../runtime/log-output.ts';
import { machineTrouble } from '../runtime/machine-trouble.ts';
import { openVault } from '../runtime/open-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { invite, ownJobs, patience, sharedJobs, startServing } from '../serving/serving.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { ToWorker } from './worker-messages.ts';
import { type WorkerPeers, workerPeers } from './worker-peers.ts';
import { type PrimaryChannel, primaryChannel } from './worker-process.ts';

type Beginning = Extract<ToWorker, { readonly do: 'begin' }>;

/** Serves until the first process, or a signal, says stop. What keeps it from serving is said by the first process. */
export async function serveAsWorker(terminal: Terminal): Promise<void> {
  const channel = primaryChannel();
  const stop = new AbortController();
  const ownStop = stopSignal();
  ownStop.addEventListener('abort', () => stop.abort(ownStop.reason), { once: true });
  const listeners = new Set<(message: ToWorker) => void>();
  const begin = await new Promise<Beginning>((resolve) => {
    channel.onMessage((message) => {
      if (message.do === 'begin') resolve(message);
      if (message.do === 'stop') stop.abort(message.reason);
      for (const listener of listeners) listener(message);
    });
  });
  const hear = (listener: (message: ToWorker) => void) => void listeners.add(listener);
  try {
    await serve(begin, terminal, { channel, hear }, stop.signal);
  } catch (thrown) {
    const error = machineTrouble(thrown) ?? thrown;
    if (!(error instanceof OperatorError || error instanceof Problem)) throw error;
    channel.send({ say: 'refused', message: error.message, hint: error.hint });
  } finally {
    await channel.close();
  }
}

async function serve(
  { number, settings, ticketSeed, isFirst, watchdogInterval }: Beginning,
  terminal: Terminal,
  {
    channel,
    hear,
  }: {
    readonly channel: PrimaryChannel;
    readonly hear: (listener: (message: ToWorker) => void) => void;
  },
  stop: AbortSignal,
): Promise<void> {
  const { world, stderr, version } = terminal;
  const log = await openLog(settings.logLevel, { forPerson: stderr.isTTY, world, worker: number });
  // Messages may come while the vault opens, and none may be lost.
  const early: ToWorker[] = [];
  let listener = (message: ToWorker) => void early.push(message);
  hear((message) => listener(message));
  const { vault, isNew, close } = await openVault(settings, world, 'create', log);
  try {
    if (isFirst) await vault.db.check();
    if (isNew) {
      log.info(
        { data_dir: settings.dataDir },
        'a new vault was made; keep a copy of its master.key elsewhere',
      );
    }
    await beginServing(vault);
    const companions = workerPeers(channel, { number, ticketSeed }, world);
    const server = await startServing(vault, settings, version, companions);
    const over = new AbortController();
    const telling = tellAlive(vault, channel, companions, over.signal);
    const jobs = [...ownJobs(vault, stop), companions.run(stop)];
    if (watchdogInterval !== undefined) {
      const tell = async (failed: readonly string[]) => channel.send({ say: 'health', failed });
      jobs.push(runWatchdog(vault, watchdogInterval, tell, stop));
    }
    listener = (message) => {
      companions.hear(message);
      switch (message.do) {
        case 'jobs':
          vault.renewalHeartbeat.onBeat(() => channel.send({ say: 'beat' }));
          jobs.push(...sharedJobs(vault, settings, terminal, stop));
          break;
        case 'invite':
          jobs.push(
            invite(vault, { url: message.url, dataDir: settings.dataDir }, stderr).then(() =>
              channel.send({ say: 'invited' }),
            ),
          );
          break;
        case 'beat':
          vault.renewalHeartbeat.beat();
          break;
        case 'backups':
          if (message.areFailing) vault.backupHealth.failed();
          else vault.backupHealth.succeeded();
          break;
      }
    };
    for (const message of early) listener(message);
    log.debug({ url: server.url }, 'this worker serves');
    channel.send({ say: 'serving', url: server.url });
    if (!stop.aborted) await once(stop, 'abort');
    await server.stop(patience);
    await Promise.all(jobs);
    over.abort();
    await telling;
    await endServing(vault);
  } finally {
    await close();
  }
}

/** Every second, for as long as the event loop turns; also while requests in flight end. */
async function tellAlive(
  vault: Pick<ReadinessContext, 'world' | 'backupHealth'>,
  channel: PrimaryChannel,
  { tellCounts }: Pick<WorkerPeers, 'tellCounts'>,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    channel.send({ say: 'alive', backupsAreFailing: vault.backupHealth.isFailing });
    tellCounts();
    await vault.world.sleep(second, over);
  }
}
