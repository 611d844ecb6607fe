/** The workers of one vault: assigns the background jobs, relays messages and kills unresponsive workers. */
import type { Worker } from 'node:cluster';
import { hour, second } from '../../base/duration.ts';
import type { Log } from '../../base/log.ts';
import { Problem } from '../../base/problem.ts';
import type { World } from '../../base/world.ts';
import { ticketSeedSize } from '../../crypto/ticket-keys.ts';
import { SignInBackoff } from '../../domain/access/sign-in-backoff.ts';
import type { Supervisor } from '../serving/supervisor.ts';
import type { Settings } from '../settings/settings.ts';
import { type Member, memberFor } from './worker-member.ts';
import type { FromWorker, ToWorker } from './worker-messages.ts';
import { WorkerSeries } from './worker-series.ts';

/** A worker whose event loop has not run for this many seconds is stuck. */
const longestSilence = 20;

export type FleetParts = {
  readonly settings: Settings;
  /** The random name of this server. */
  readonly instance: string;
  readonly world: World;
  readonly log: Log;
  readonly supervisor: Supervisor;
  readonly startWorker: () => Worker;
};

export class Fleet {
  readonly #parts: FleetParts;
  readonly #members = new Set<Member>();
  readonly #backoff: SignInBackoff;
  readonly #series: WorkerSeries;
  readonly #beat = Promise.withResolvers<void>();
  readonly #invited = Promise.withResolvers<void>();
  #settings: Settings;
  #hasServed = false;
  #isReady = false;
  #ticketSeed: Buffer;
  /** The worker with the background jobs; `wanted` if no worker serves that could run them. */
  #jobs: Member | 'not yet' | 'wanted' = 'not yet';
  #backupsAreFailing = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#settings = parts.settings;
    this.#backoff = new SignInBackoff(parts.world);
    this.#series = new WorkerSeries(parts.world);
    this.#ticketSeed = parts.world.randomBytes(ticketSeedSize);
  }

  /** Resolves when the background jobs run for the first time. */
  get firstBeat(): Promise<void> {
    return this.#beat.promise;
  }

  get serves(): boolean {
    return this.#serving.length > 0;
  }

  /** The status line for systemd. */
  get #status(): string {
    const { length } = this.#serving;
    const { workers } = this.#parts.settings;
    const few = length === workers ? '' : ` of ${workers}`;
    return `STATUS=listening on ${this.#serving[0]?.url ?? 'nothing'} with ${length}${few} workers`;
  }

  /** Notifies the supervisor that all workers serve. Health is reported from then on. */
  async notifyReady(): Promise<void> {
    this.#isReady = true;
    await this.#parts.supervisor.notify('READY=1', this.#status);
  }

  /** Starts the worker with this number. */
  start(number: number): Member {
    const { instance, startWorker, supervisor, world } = this.#parts;
    const member = memberFor(number, startWorker, world, (from, message) => this.#hear(from, message));
    member.send({
      do: 'begin',
      number,
      settings: this.#settings,
      instance,
      ticketSeed: this.#ticketSeed,
      isFirst: !this.#hasServed,
      watchdogInterval: supervisor.watchdogInterval,
    });
    this.#members.add(member);
    void member.ended.then(() => {
      this.#members.delete(member);
      this.#series.gone(member);
      if (this.#jobs !== member) return;
      this.#jobs = 'wanted';
      this.giveJobs();
    });
    return member;
  }

  /** Lets a worker print how to create the first administrator, if there is none. */
  async announceSetup(url: string): Promise<void> {
    const [first] = this.#serving;
    first?.send({ do: 'invite', url });
    await Promise.race([this.#invited.promise, first?.ended]);
  }

  /** Assigns the background jobs to a serving worker, or to the first that will serve. */
  giveJobs(): void {
    const [first] = this.#serving.toSorted((a, b) => a.number - b.number);
    this.#jobs = first ?? 'wanted';
    if (first === undefined) return;
    const { number: worker, pid } = first;
    this.#parts.log.info({ worker, pid }, 'worker elected to run background jobs');
    first.send({ do: 'jobs' });
  }

  /** Every second until `signal` is aborted: kills unresponsive workers. Every hour: rotates the TLS ticket keys. */
  async watch(signal: AbortSignal): Promise<void> {
    const { world, log } = this.#parts;
    for (let seconds = 1; ; seconds += 1) {
      // Count seconds instead of reading a clock, which may jump.
      await world.sleep(second, signal);
      if (signal.aborted) return;
      for (const member of this.#serving) {
        member.silentFor += 1;
        if (member.silentFor <= longestSilence) continue;
        log.error({ worker: member.number, pid: member.pid }, 'killed unresponsive worker');
        member.kill();
      }
      if (seconds % (hour / second) === 0) {
        this.#ticketSeed = world.randomBytes(ticketSeedSize);
        this.#broadcast({ do: 'tickets', seed: this.#ticketSeed });
      }
    }
  }

  /** Lets all workers, also later ones, adopt what of these settings a running server can. */
  adopt({ logLevel, sessionLimits, clients }: Settings): void {
    // The addresses stay those that were claimed at the start.
    this.#settings = { ...this.#settings, logLevel, sessionLimits, clients };
    this.#broadcast({ do: 'adopt', settings: this.#settings });
  }

  /** Stops all workers and waits until they have exited. */
  async stop(reason: string): Promise<void> {
    this.#jobs = 'not yet';
    this.#broadcast({ do: 'stop', reason });
    await Promise.all([...this.#members].map(({ ended }) => ended));
  }

  get #serving(): Member[] {
    return [...this.#members].filter(({ url }) => url !== undefined);
  }

  #broadcast(message: ToWorker, except?: Member): void {
    for (const member of this.#members) if (member !== except) member.send(message);
  }

  #hear(from: Member, message: FromWorker): void {
    switch (message.say) {
      case 'serving':
        this.#welcome(from);
        break;
      case 'beat':
        this.#beat.resolve();
        this.#broadcast({ do: 'beat' }, from);
        break;
      case 'invited':
        this.#invited.resolve();
        break;
      case 'alive':
        if (from === this.#jobs) this.#noteBackups(message.backupsAreFailing, from);
        break;
      case 'health':
        this.#noteHealth(from, message.failed);
        break;
      case 'taken':
        this.#broadcast({ do: 'count', taken: message.taken }, from);
        break;
      case 'counted':
        this.#series.note(from, message.counts);
        break;
      case 'measured':
        this.#series.answer(from, message.id, message.measured);
        break;
      case 'gather':
        void this.#gather(from, message.id);
        break;
      case 'attempt':
        this.#beginAttempt(from, message);
        break;
      case 'attempt-ended':
        from.attempts.get(message.id)?.[message.how]();
        from.attempts.delete(message.id);
        break;
    }
  }

  async #gather(from: Member, id: number): Promise<void> {
    from.send({ do: 'series', id, series: await this.#series.gather(this.#serving) });
  }

  #welcome(member: Member): void {
    this.#hasServed = true;
    if (this.#jobs === 'wanted') this.giveJobs();
    else if (this.#jobs !== 'not yet') member.send({ do: 'beat' });
    if (this.#backupsAreFailing) member.send({ do: 'backups', areFailing: true });
  }

  #noteBackups(areFailing: boolean, from: Member): void {
    if (areFailing === this.#backupsAreFailing) return;
    this.#backupsAreFailing = areFailing;
    this.#broadcast({ do: 'backups', areFailing }, from);
  }

  /** Notifies the watchdog once all workers have reported; a silent worker suppresses the notification. */
  #noteHealth(from: Member, failed: readonly string[]): void {
    from.health = failed;
    const healths = this.#serving.map(({ health }) => health);
    if (healths.includes(undefined)) return;
    for (const member of this.#members) member.health = undefined;
    if (!this.#isReady) return;
    const all = [...new Set(healths.flatMap((health) => health ?? []))];
    const { supervisor } = this.#parts;
    if (all.length === 0) void supervisor.notify('WATCHDOG=1', this.#status);
    else void supervisor.notify(`STATUS=not working: ${all.join(', ')}`);
  }

  #beginAttempt(
    from: Member,
    { id, name, address, standing }: Extract<FromWorker, { readonly say: 'attempt' }>,
  ): void {
    let retryAfter: number | undefined;
    try {
      from.attempts.set(id, this.#backoff.begin(name, address, standing));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      retryAfter = error.retryAfter ?? 1;
    }
    from.send({ do: 'attempt', id, retryAfter });
  }
}
