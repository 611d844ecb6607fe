/** What the first process of a vault that serves on several and its workers say to each other. */
import type { KeyCount } from '../../domain/access/key-limits.ts';
import type { AddressStanding } from '../../domain/access/sign-in-backoff.ts';
import type { Series } from '../../domain/health/meter.ts';
import type { Measured } from '../serving/open-metrics.ts';
import type { Settings } from '../settings/settings.ts';

/** What one process has counted of API keys since it last told. */
export type Taken = readonly (readonly [count: KeyCount, name: string, times: number])[];

/** To a worker. */
export type ToWorker =
  /** The first message. Settings are those that the first process has read: a file may have changed since. */
  | {
      readonly do: 'begin';
      readonly number: number;
      readonly settings: Settings;
      readonly ticketSeed: Uint8Array;
      /** Before any other has served: it looks through the database, which takes a while. */
      readonly isFirst: boolean;
      /** How often to say how it is, in milliseconds; undefined where nobody wants to know. */
      readonly watchdogInterval: number | undefined;
    }
  /** Renew and do the other work that one process does for all. */
  | { readonly do: 'jobs' }
  /** Show the setup link where there is no administrator. */
  | { readonly do: 'invite'; readonly url: string }
  /** The worker with the jobs lives. */
  | { readonly do: 'beat' }
  | { readonly do: 'backups'; readonly areFailing: boolean }
  | { readonly do: 'tickets'; readonly seed: Uint8Array }
  | { readonly do: 'count'; readonly taken: Taken }
  /** An attempt at a password may begin, or has to wait so many seconds. */
  | { readonly do: 'attempt'; readonly id: number; readonly retryAfter: number | undefined }
  /** Say what was counted, and how this process is. */
  | { readonly do: 'measure'; readonly id: number }
  /** What all have said, for the one that asked. */
  | { readonly do: 'series'; readonly id: number; readonly series: Series }
  | { readonly do: 'stop'; readonly reason: string };

/** From a worker. */
export type FromWorker =
  | { readonly say: 'serving'; readonly url: string }
  /** It cannot serve, and whoever runs the vault is to know why. */
  | { readonly say: 'refused'; readonly message: string; readonly hint: string | undefined }
  /** Every second: its event loop turns. */
  | { readonly say: 'alive'; readonly backupsAreFailing: boolean }
  /** It has the jobs, and the renewal engine has just looked at its queue. */
  | { readonly say: 'beat' }
  /** What of it does not work, nothing as a rule. */
  | { readonly say: 'health'; readonly failed: readonly string[] }
  /** Whoever was to be shown the setup link has been. */
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
  /** Every second where metrics are served: what is lost when it dies is what it counted since. */
  | { readonly say: 'counted'; readonly counts: Series }
  | { readonly say: 'measured'; readonly id: number; readonly measured: Measured }
  /** Somebody wants to have the metrics of all. */
  | { readonly say: 'gather'; readonly id: number }
  | { readonly say: 'over' };
