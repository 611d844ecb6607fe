/** One worker as the primary process sees it, from start to exit. */
import type { Worker } from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import type { Attempt } from '../../domain/access/sign-in-backoff.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** More than can be pending at once. */
const mostAttempts = 1000;

/** Why a worker exited. */
export type Ending = {
  /** The reason for the operator; its own error if it refused to serve. */
  readonly error: OperatorError;
  readonly hasServed: boolean;
};

export type Member = {
  /** Its number, from 1. */
  readonly number: number;
  readonly pid: number | undefined;
  readonly send: (message: ToWorker) => void;
  readonly kill: () => void;
  /** The URL that it serves, once it does. */
  url: string | undefined;
  /** Resolves when it serves. */
  readonly serving: Promise<void>;
  /** Seconds since its last message. */
  silentFor: number;
  /** The failed checks in its last health report. */
  health: readonly string[] | undefined;
  /** Its latest sign-in attempts; failed ones are not reported. */
  readonly attempts: LRUCache<number, Attempt>;
  /** Resolves when it has exited. */
  readonly ended: Promise<Ending>;
};

/** Starts a worker and listens to its messages. If the system cannot start it, `ended` resolves. */
export function memberFor(
  number: number,
  startWorker: () => Worker,
  world: World,
  onMessage: (member: Member, message: FromWorker) => void,
): Member {
  let refusal: OperatorError | undefined;
  const { promise: ended, resolve: end } = Promise.withResolvers<Ending>();
  const { promise: serving, resolve: serves } = Promise.withResolvers<void>();
  const notStarted = (cause: unknown) => {
    const error = new OperatorError(`cannot start worker ${number}: ${describeSystemError(cause)}`, {
      hint: 'The system is out of memory, processes or open files. Check its limits.',
      cause,
    });
    end({ error, hasServed: false });
  };
  const worker = started(startWorker, notStarted);
  const member: Member = {
    number,
    pid: worker?.process.pid,
    send: (message) => {
      // A worker that has just disconnected needs no message; `exit` follows.
      if (worker?.isConnected()) worker.send(message, () => undefined);
    },
    kill: () => worker?.process.kill('SIGKILL'),
    ...{ url: undefined, silentFor: 0, health: undefined },
    attempts: new LRUCache({ max: mostAttempts }),
    serving,
    ended,
  };
  if (worker === undefined) return member;
  worker.on('message', (message: FromWorker) => {
    if (message.say === 'refused') {
      refusal = new OperatorError(message.message, message.hint === undefined ? {} : { hint: message.hint });
      return;
    }
    if (message.say === 'serving') {
      member.url = message.url;
      serves();
    }
    member.silentFor = 0;
    onMessage(member, message);
  });
  worker.on('error', (error) => {
    // Without a process no exit event follows. A broken channel does not matter until the process exits.
    if (worker.process.pid === undefined) notStarted(error);
  });
  const isOver = new Promise<void>((resolve) => worker.once('disconnect', resolve));
  worker.once('exit', async (code: number | null, signal: string | null) => {
    // Its last message may still be in transit.
    await Promise.race([isOver, world.sleep(second)]);
    const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
    const error = refusal ?? new OperatorError(`worker ${number} ${how}`);
    end({ error, hasServed: member.url !== undefined });
  });
  return member;
}

/** Node reports a failed start by throwing or by an `error` event. */
function started(startWorker: () => Worker, notStarted: (cause: unknown) => void): Worker | undefined {
  try {
    return startWorker();
  } catch (error) {
    notStarted(error);
    return undefined;
  }
}
