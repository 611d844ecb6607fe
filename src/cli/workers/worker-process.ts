/**
 * Starts worker processes from the primary process, and tells workers and primary apart. They communicate over Node's IPC
 * channel.
 */
import type { Worker } from 'node:cluster';
import { existsSync, readlinkSync } from 'node:fs';
import { isSea } from 'node:sea';
import { nameVariable, programName } from '../runtime/program-name.ts';
import type { Environment } from '../terminal/terminal.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** The pid of the process that started this worker. Children of a worker have another parent, so they are not workers. */
const parentVariable = 'VAULT_WORKER_OF';

/** The running executable, even if a newer one has replaced its file, so that all workers have the same version. */
const self = '/proc/self/exe';

/** Whether this process is a worker. */
export function isWorker(environment: Environment): boolean {
  return environment[parentVariable] === String(process.ppid) && process.send !== undefined;
}

/** Returns a function that starts a worker. Call it only in the primary process. */
export async function workerStarter(): Promise<() => Worker> {
  const { default: cluster } = await import('node:cluster');
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({
    // Node passes this as the script name; for the executable it is the command.
    ...(isSea()
      ? { exec: 'serve', args: [], execArgv: [] }
      : { exec: process.argv[1] ?? '', args: ['serve'] }),
    serialization: 'advanced',
  });
  return () => {
    const before = process.execPath;
    if (isReplaced(before)) process.execPath = self;
    try {
      return cluster.fork({ [parentVariable]: String(process.pid), [nameVariable]: programName() });
    } finally {
      process.execPath = before;
    }
  };
}

/**
 * Whether the kernel spreads connections to one port over several processes. Otherwise the primary accepts them and passes
 * them on, and a connection in transit to a killed worker is lost.
 */
export const sharesPorts = process.platform === 'linux';

function isReplaced(path: string): boolean {
  return existsSync(self) && readlinkSync(self) !== path;
}

/** The channel to the primary process, in a worker. */
export type PrimaryChannel = {
  readonly send: (message: FromWorker) => void;
  /** Messages that arrive before the first listener are buffered for it. */
  readonly onMessage: (listener: (message: ToWorker) => void) => void;
  /** Flushes pending messages and disconnects, so that this process can exit. */
  readonly close: () => Promise<void>;
};

export async function primaryChannel(): Promise<PrimaryChannel> {
  const { default: cluster } = await import('node:cluster');
  cluster.worker?.on('error', () => {
    // The primary process was killed while a message was on its way; this worker exits when the channel closes.
  });
  return {
    send: (message) => {
      // Without the primary, this worker exits, too; drop the message.
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
