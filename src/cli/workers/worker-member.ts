/** One worker as the first process sees it: started, spoken to, and gone in the end. */
import type { Worker } from 'node:cluster';
import { LRUCache } from 'lru-cache';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import type { Attempt } from '../../domain/access/sign-in-backoff.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';

/** More than can be under way at once. */
const mostAttempts = 1000;

/** How a worker ended. */
export type Ending = {
  /** Why, in words for whoever runs the vault; what it said itself where it refused to serve. */
  readonly error: OperatorError;
  readonly hasServed: boolean;
};

export type Member = {
  /** Its place, from 1. */
  readonly number: number;
  readonly pid: number | undefined;
  readonly send: (message: ToWorker) => void;
  readonly kill: () => void;
  /** Where it serves, once it does. */
  url: string | undefined;
  /** Resolves when it serves. */
  readonly serving: Promise<void>;
  /** Seconds in which nothing was heard of it. */
  silentFor: number;
  /** What did not work when it last said how it is. */
  health: readonly string[] | undefined;
  /** Its latest attempts at passwords; of those that failed it says nothing more. */
  readonly attempts: LRUCache<number, Attempt>;
  /** Resolves when it is gone. */
  readonly ended: Promise<Ending>;
};

/** Starts a worker and begins to talk to it. One that the system does not let start has ended. */
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
    const error = new OperatorError(`worker ${number} cannot be started: ${(cause as Error).message}`, {
      hint: 'The system has no memory, or no process or file left for it. What it allows may be too little.',
      cause,
    });
    end({ error, hasServed: false });
  };
  const worker = started(startWorker, notStarted);
  const member: Member = {
    number,
    pid: worker?.process.pid,
    send: (message) => {
      // Whoever has gone meanwhile need not be told; `exit` follows.
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
    // Without a process nothing else follows. A channel that broke does not matter until its process is gone.
    if (worker.process.pid === undefined) notStarted(error);
  });
  const isOver = new Promise<void>((resolve) => worker.once('disconnect', resolve));
  worker.once('exit', async (code: number | null, signal: string | null) => {
    // What it said last may still be on its way.
    await Promise.race([isOver, world.sleep(second)]);
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    const error = refusal ?? new OperatorError(`worker ${number} ended ${how}`);
    end({ error, hasServed: member.url !== undefined });
  });
  return member;
}

/** Depending on what it lacks, Node tells at once or later. */
function started(startWorker: () => Worker, notStarted: (cause: unknown) => void): Worker | undefined {
  try {
    return startWorker();
  } catch (error) {
    notStarted(error);
    return undefined;
  }
}
