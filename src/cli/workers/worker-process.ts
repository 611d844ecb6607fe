/**
 * The processes of one `vault serve`: how the first starts others of this very program, and how a process knows that it is
 * one of those. They talk over a channel that Node opens between them.
 */
import type { Worker } from 'node:cluster';
import { existsSync, readlinkSync } from 'node:fs';
import { isSea } from 'node:sea';
import type { Environment } from '../terminal/terminal.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** Names the process that started this one. What it starts in turn has another parent, and is no worker. */
const parentVariable = 'VAULT_WORKER_OF';

/** The program that runs, also when a newer one has taken its place: all workers are of one version. */
const self = '/proc/self/exe';

/** Whether this process was started by another to serve beside it. */
export function isWorker(environment: Environment): boolean {
  return environment[parentVariable] === String(process.ppid) && process.send !== undefined;
}

/** A function that starts one more worker. To be called in the first process only. */
export async function workerStarter(): Promise<() => Worker> {
  const { default: cluster } = await import('node:cluster');
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    // Node puts this where a script's name stands; for the executable it is the command.
    ...(isSea()
      ? { exec: 'serve', args: [], execArgv: [] }
      : { exec: process.argv[1] ?? '', args: ['serve'] }),
    serialization: 'advanced',
  });
  return () => {
    const before = process.execPath;
    if (isReplaced(before)) process.execPath = self;
    try {
      return cluster.fork({ [parentVariable]: String(process.pid) });
    } finally {
      process.execPath = before;
    }
  };
}

/**
 * Whether the system itself shares the connections to one port out among processes. Elsewhere the first process accepts them
 * and hands them on, and a connection on its way to a worker that is killed is lost.
 */
export const sharesPorts = process.platform === 'linux';

function isReplaced(path: string): boolean {
  return existsSync(self) && readlinkSync(self) !== path;
}

/** The channel to the first process, in a worker. */
export type PrimaryChannel = {
  readonly send: (message: FromWorker) => void;
  /** Messages that came before the first listener are handed to it. */
  readonly onMessage: (listener: (message: ToWorker) => void) => void;
  /** Sends what is waiting, and lets this process end. */
  readonly close: () => Promise<void>;
};

export function primaryChannel(): PrimaryChannel {
  return {
    send: (message) => {
      // Without the first process this one ends too; until then nobody is there to be told.
      if (process.connected) process.send?.(message, undefined, {}, () => undefined);
    },
    onMessage: (listener) => {
      process.on('message', (message) => listener(message as ToWorker));
    },
    close: async () => {
      if (!process.connected) return;
      await new Promise<void>((resolve) => {
        process.send?.({ say: 'over' } satisfies FromWorker, undefined, {}, () => resolve());
      });
      process.disconnect?.();
    },
  };
}
