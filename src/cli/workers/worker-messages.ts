/** The messages between the primary process and its workers. */
import type { KeyCount } from '../../domain/access/key-limits.ts';
import type { AddressStanding } from '../../domain/access/sign-in-backoff.ts';
import type { Series } from '../../domain/health/meter.ts';
import type { Measured } from '../serving/open-metrics.ts';
import type { Settings } from '../settings/settings.ts';

/** The API key uses that one process has counted since its last report. */
export type Taken = readonly (readonly [count: KeyCount, name: string, times: number])[];

/** To a worker. */
export type ToWorker =
  /** The first message. All workers use the settings that the primary has read. */
  | {
      readonly do: 'begin';
      readonly number: number;
      readonly settings: Settings;
      /** The random name of the server, the same for all its workers. */
      readonly instance: string;
      readonly ticketSeed: Uint8Array;
      /** No worker has served yet, so this one checks the database, which takes a while. */
      readonly isFirst: boolean;
      /** How often to report health, in milliseconds; undefined without a watchdog. */
      readonly watchdogInterval: number | undefined;
    }
  /** Run the background jobs that one process runs for all. */
  | { readonly do: 'jobs' }
  /** Print how to create the first administrator, if there is none. */
  | { readonly do: 'invite'; readonly url: string }
  /** The worker with the background jobs is alive. */
  | { readonly do: 'beat' }
  | { readonly do: 'backups'; readonly areFailing: boolean }
  | { readonly do: 'tickets'; readonly seed: Uint8Array }
  | { readonly do: 'count'; readonly taken: Taken }
  /** A sign-in attempt may start, or has to wait this many seconds. */
  | { readonly do: 'attempt'; readonly id: number; readonly retryAfter: number | undefined }
  /** Report counters and process statistics. */
  | { readonly do: 'measure'; readonly id: number }
  /** The metrics of all workers, for the one that requested them. */
  | { readonly do: 'series'; readonly id: number; readonly series: Series }
  /** Use these settings as far as a running server can. */
  | { readonly do: 'adopt'; readonly settings: Settings }
  | { readonly do: 'stop'; readonly reason: string };

/** From a worker. */
export type FromWorker =
  | { readonly say: 'serving'; readonly url: string }
  /** It cannot serve, with the error for the operator. */
  | { readonly say: 'refused'; readonly message: string; readonly hint: string | undefined }
  /** Sent every second as long as its event loop runs. */
  | { readonly say: 'alive'; readonly backupsAreFailing: boolean }
  /** Its renewal engine has just checked the queue. */
  | { readonly say: 'beat' }
  /** Its failed health checks. */
  | { readonly say: 'health'; readonly failed: readonly string[] }
  /** It has printed how to create the first administrator. */
  | { readonly say: 'invited' }
  | { readonly say: 'taken'; readonly taken: Taken }
  | {
      readonly say: 'attempt';
      readonly id: number;
      readonly name: string | undefined;
      readonly address: string | undefined;
      readonly standing: AddressStanding;
    }
  | { readonly say: 'attempt-ended'; readonly id: number; readonly how: 'succeeded' | 'withdrawn' }
  /** Sent every second if metrics are served, so that a crash loses at most the counts of a second. */
  | { readonly say: 'counted'; readonly counts: Series }
  | { readonly say: 'measured'; readonly id: number; readonly measured: Measured }
  /** Request the metrics of all workers. */
  | { readonly say: 'gather'; readonly id: number }
  | { readonly say: 'over' };
