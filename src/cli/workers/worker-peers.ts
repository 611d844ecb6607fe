/** The other workers of a vault as seen by one worker, which reaches them through the primary process. */

import { hour } from '../../base/duration.ts';
import { Signal } from '../../base/signal.ts';
import type { World } from '../../base/world.ts';
import type { KeyCount } from '../../domain/access/key-limits.ts';
import { tooManyAttempts } from '../../domain/access/sign-in-backoff.ts';
import type { Series } from '../../domain/health/meter.ts';
import type { MeasuredPeers, Measuring } from '../serving/open-metrics.ts';
import type { ToWorker } from './worker-messages.ts';
import type { PrimaryChannel } from './worker-process.ts';

/** How long, in milliseconds, key uses are collected before they are reported; other workers lag by as much. */
const gatheredFor = 50;

export type WorkerPeers = MeasuredPeers & {
  /** Handles a message of the primary process. */
  readonly hear: (message: ToWorker) => void;
  /** Reports the counters, if metrics are served. */
  readonly reportCounts: () => void;
  /** Reports the counted key uses until `stop` is aborted. */
  readonly run: (stop: AbortSignal) => Promise<void>;
};

/** The peers of this worker, reached through `channel`. */
export function workerPeers(
  { send }: Pick<PrimaryChannel, 'send'>,
  { number, ticketSeed }: { readonly number: number; readonly ticketSeed: Uint8Array },
  world: World,
): WorkerPeers {
  let seed = Buffer.from(ticketSeed);
  let taken = new Map<string, [KeyCount, string, number]>();
  let listener: ((count: KeyCount, name: string, times: number) => void) | undefined;
  let measuring: Measuring | undefined;
  const gathering = new Map<number, (series: Series) => void>();
  const asked = new Map<number, (retryAfter: number | undefined) => void>();
  const counted = new Signal(world);
  let lastId = 0;
  return {
    number,
    measureBy: (given) => {
      measuring = given;
    },
    allSeries: () => {
      lastId += 1;
      const id = lastId;
      return new Promise<Series>((resolve) => {
        gathering.set(id, resolve);
        send({ say: 'gather', id });
      });
    },
    reportCounts: () => {
      if (measuring !== undefined) send({ say: 'counted', counts: measuring.counts() });
    },
    ticketSeed: () => seed,
    signInPauses: {
      begin: async (name, address, standing) => {
        lastId += 1;
        const id = lastId;
        const retryAfter = await new Promise<number | undefined>((resolve) => {
          asked.set(id, resolve);
          send({ say: 'attempt', id, name, address, standing });
        });
        if (retryAfter !== undefined) throw tooManyAttempts(retryAfter);
        return {
          succeeded: () => send({ say: 'attempt-ended', id, how: 'succeeded' }),
          withdrawn: () => send({ say: 'attempt-ended', id, how: 'withdrawn' }),
        };
      },
    },
    tellTaken: (count, name) => {
      const key = `${count} ${name}`;
      const known = taken.get(key);
      if (known === undefined) taken.set(key, [count, name, 1]);
      else known[2] += 1;
      counted.notify();
    },
    hearTaken: (given) => {
      listener = given;
    },
    hear: (message) => {
      if (message.do === 'tickets') seed = Buffer.from(message.seed);
      else if (message.do === 'count') for (const each of message.taken) listener?.(...each);
      else if (message.do === 'measure') {
        const { id } = message;
        const counts = measuring?.counts() ?? {};
        // Without process statistics, still report the counters.
        const answer = (process: Series) => send({ say: 'measured', id, measured: { counts, process } });
        void measuring?.process().then(answer, () => answer({}));
      } else if (message.do === 'series') {
        gathering.get(message.id)?.(message.series);
        gathering.delete(message.id);
      } else if (message.do === 'attempt') {
        asked.get(message.id)?.(message.retryAfter);
        asked.delete(message.id);
      }
    },
    run: async (stop) => {
      while (!stop.aborted) {
        await counted.wait(hour, stop);
        await world.sleep(gatheredFor, stop);
        if (taken.size === 0) continue;
        send({ say: 'taken', taken: [...taken.values()] });
        taken = new Map();
      }
    },
  };
}
