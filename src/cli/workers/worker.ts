/** A worker process: serves the vault as the primary process directs, and reports its health. */
import { once } from 'node:events';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import type { ReadinessContext } from '../../domain/doctor/readiness.ts';
import { recordServedSettings } from '../../domain/presence/served-settings.ts';
import { beginServing, endServing } from '../../domain/presence/served-vault.ts';
import { runWatchdog } from '../../jobs/watchdog.ts';
import { catchHangups } from '../runtime/hangup-signal.ts';
import { openLog } from '../runtime/log-output.ts';
import { machineTrouble } from '../runtime/machine-trouble.ts';
import { openVault } from '../runtime/open-vault.ts';
import { stopSignal } from '../runtime/stop-signal.ts';
import { startWriterThread } from '../runtime/writer-thread.ts';
import { announceSetup, ownJobs, sharedJobs, startServing, stopTimeout } from '../serving/serving.ts';
import { recordedSettings } from '../settings/recorded-settings.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { ToWorker } from './worker-messages.ts';
import { type WorkerPeers, workerPeers } from './worker-peers.ts';
import { type PrimaryChannel, primaryChannel } from './worker-process.ts';

type Beginning = Extract<ToWorker, { readonly do: 'begin' }>;

/** Serves until the primary process or a signal stops it. The primary prints the error if it cannot serve. */
export async function serveAsWorker(terminal: Terminal): Promise<void> {
  const channel = await primaryChannel();
  // The primary process reloads; a closed terminal signals every process.
  catchHangups();
  const stop = new AbortController();
  const ownStop = stopSignal();
  ownStop.addEventListener('abort', () => stop.abort(ownStop.reason), { once: true });
  // A stop can follow so closely that it arrives before anyone listens.
  const early: ToWorker[] = [];
  let listener: (message: ToWorker) => void = (message) => early.push(message);
  const begin = await new Promise<Beginning>((resolve) => {
    channel.onMessage((message) => {
      if (message.do === 'stop') stop.abort(message.reason);
      if (message.do === 'begin') resolve(message);
      else listener(message);
    });
  });
  const hear = (heard: (message: ToWorker) => void) => {
    listener = heard;
    for (const message of early.splice(0)) heard(message);
  };
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
  { number, settings, instance, ticketSeed, isFirst, watchdogInterval }: Beginning,
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
  const log = openLog(settings.logLevel, { forPerson: stderr.isTTY, world, worker: number });
  // Buffer messages that arrive while the vault opens.
  const early: ToWorker[] = [];
  let listener = (message: ToWorker) => void early.push(message);
  let isWholeStop = false;
  const wholeStop = Promise.withResolvers<void>();
  hear((message) => {
    if (message.do === 'stop') {
      isWholeStop = true;
      wholeStop.resolve();
    }
    listener(message);
  });
  const { vault, isNew, close } = await openVault(settings, world, 'create', log, undefined, {
    startThread: startWriterThread,
  });
  try {
    if (isFirst) await vault.db.check();
    if (isNew) {
      log.info(
        { data_dir: settings.dataDir },
        'vault created; keep a copy of its master key on another machine',
      );
    }
    await beginServing(vault);
    const peers = workerPeers(channel, { number, ticketSeed }, world);
    const server = await startServing(vault, settings, version, peers);
    const recorded = recordedSettings(settings, { url: server.url, instance, keyring: vault.keyring });
    await recordServedSettings(vault, recorded);
    const over = new AbortController();
    const reporting = reportAlive(vault, channel, peers, over.signal);
    const jobs = [...ownJobs(vault, stop), peers.run(stop)];
    if (watchdogInterval !== undefined) {
      const reportHealth = async (failed: readonly string[]) => channel.send({ say: 'health', failed });
      jobs.push(runWatchdog(vault, watchdogInterval, reportHealth, stop));
    }
    listener = (message) => {
      peers.hear(message);
      switch (message.do) {
        case 'jobs':
          vault.renewalHeartbeat.onBeat(() => channel.send({ say: 'beat' }));
          jobs.push(...sharedJobs(vault, settings, terminal, recorded, stop));
          break;
        case 'invite':
          jobs.push(
            announceSetup(vault, { url: message.url, dataDir: settings.dataDir }, stderr).then(() =>
              channel.send({ say: 'invited' }),
            ),
          );
          break;
        case 'beat':
          vault.renewalHeartbeat.beat();
          break;
        case 'adopt':
          log.setLevel(message.settings.logLevel);
          server.adopt(message.settings);
          break;
        case 'backups':
          if (message.areFailing) vault.backupHealth.failed();
          else vault.backupHealth.succeeded();
          break;
      }
    };
    for (const message of early) listener(message);
    log.debug({ url: server.url }, 'worker ready');
    channel.send({ say: 'serving', url: server.url });
    if (!stop.aborted) await once(stop, 'abort');
    await server.stop(stopTimeout);
    await Promise.all(jobs);
    over.abort();
    await reporting;
    // A worker that was stopped alone has a successor. The whole server stops if the primary process says so, which may be
    // a moment later if the same signal reached both.
    await Promise.race([wholeStop.promise, world.sleep(second)]);
    if (isWholeStop) await endServing(vault, instance);
  } finally {
    await close();
  }
}

/** Reports every second as long as the event loop runs, also while requests in flight finish. */
async function reportAlive(
  vault: Pick<ReadinessContext, 'world' | 'backupHealth'>,
  channel: PrimaryChannel,
  { reportCounts }: Pick<WorkerPeers, 'reportCounts'>,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    channel.send({ say: 'alive', backupsAreFailing: vault.backupHealth.isFailing });
    reportCounts();
    await vault.world.sleep(second, over);
  }
}
