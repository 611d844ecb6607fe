/** The workers of one vault together: who has the jobs, what is told to all of them, and which of them hangs. */
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

/** A worker whose event loop has not turned for so many seconds will not turn again. */
const longestSilence = 20;

export type FleetParts = {
  readonly settings: Settings;
  readonly world: World;
  readonly log: Log;
  readonly supervisor: Supervisor;
  readonly startWorker: () => Worker;
};

export class Fleet {
  readonly #parts: FleetParts;
  readonly #members = new Set<Member>();
  readonly #pauses: SignInBackoff;
  readonly #series: WorkerSeries;
  readonly #beat = Promise.withResolvers<void>();
  readonly #invited = Promise.withResolvers<void>();
  #hasServed = false;
  #isReady = false;
  #ticketSeed: Buffer;
  /** Who has the jobs; `wanted` where nobody who serves is left to have them. */
  #jobs: Member | 'not yet' | 'wanted' = 'not yet';
  #backupsAreFailing = false;

  constructor(parts: FleetParts) {
    this.#parts = parts;
    this.#pauses = new SignInBackoff(parts.world);
    this.#series = new WorkerSeries(parts.world);
    this.#ticketSeed = parts.world.randomBytes(ticketSeedSize);
  }

  /** Resolves when the jobs are being done for the first time. */
  get firstBeat(): Promise<void> {
    return this.#beat.promise;
  }

  get serves(): boolean {
    return this.#serving.length > 0;
  }

  /** For systemd. */
  get #status(): string {
    const { length } = this.#serving;
    const { workers } = this.#parts.settings;
    const few = length === workers ? '' : ` of ${workers}`;
    return `STATUS=listening on ${this.#serving[0]?.url ?? 'nothing'} with ${length}${few} workers`;
  }

  /** Tells the supervisor that all serve. Signs of life count from then on: before, nobody had the jobs. */
  async tellReady(): Promise<void> {
    this.#isReady = true;
    await this.#parts.supervisor.tell('READY=1', this.#status);
  }

  /** Starts the worker of this place. */
  start(number: number): Member {
    const { settings, startWorker, supervisor, world } = this.#parts;
    const member = memberFor(number, startWorker, world, (from, message) => this.#hear(from, message));
    member.send({
      do: 'begin',
      number,
      settings,
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

  /** Has the setup link shown where there is no administrator. */
  async invite(url: string): Promise<void> {
    const [first] = this.#serving;
    first?.send({ do: 'invite', url });
    await Promise.race([this.#invited.promise, first?.ended]);
  }

  /** Gives the jobs to a worker that serves, or to the first that will. */
  giveJobs(): void {
    const [first] = this.#serving.toSorted((a, b) => a.number - b.number);
    this.#jobs = first ?? 'wanted';
    if (first === undefined) return;
    const { number: worker, pid } = first;
    this.#parts.log.info({ worker, pid }, 'renewals and backups are the business of this worker');
    first.send({ do: 'jobs' });
  }

  /** Until `signal` is aborted, every second: ends workers that hang, and renews what sessions of TLS are resumed with. */
  async watch(signal: AbortSignal): Promise<void> {
    const { world, log } = this.#parts;
    for (let seconds = 1; ; seconds += 1) {
      // Seconds are counted, not read from a clock, which may jump.
      await world.sleep(second, signal);
      if (signal.aborted) return;
      for (const member of this.#serving) {
        member.silentFor += 1;
        if (member.silentFor <= longestSilence) continue;
        log.error({ worker: member.number, pid: member.pid }, 'a worker hangs, and is ended');
        member.kill();
      }
      if (seconds % (hour / second) === 0) {
        this.#ticketSeed = world.randomBytes(ticketSeedSize);
        this.#tellAll({ do: 'tickets', seed: this.#ticketSeed });
      }
    }
  }

  /** Tells all to stop, and waits until they have. */
  async stop(reason: string): Promise<void> {
    this.#jobs = 'not yet';
    this.#tellAll({ do: 'stop', reason });
    await Promise.all([...this.#members].map(({ ended }) => ended));
  }

  get #serving(): Member[] {
    return [...this.#members].filter(({ url }) => url !== undefined);
  }

  #tellAll(message: ToWorker, except?: Member): void {
    for (const member of this.#members) if (member !== except) member.send(message);
  }

  #hear(from: Member, message: FromWorker): void {
    switch (message.say) {
      case 'serving':
        this.#welcome(from);
        break;
      case 'beat':
        this.#beat.resolve();
        this.#tellAll({ do: 'beat' }, from);
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
        this.#tellAll({ do: 'count', taken: message.taken }, from);
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
    this.#tellAll({ do: 'backups', areFailing }, from);
  }

  /** The watchdog is told how all are, when all have said it: nothing is told while one is silent. */
  #noteHealth(from: Member, failed: readonly string[]): void {
    from.health = failed;
    const healths = this.#serving.map(({ health }) => health);
    if (healths.includes(undefined)) return;
    for (const member of this.#members) member.health = undefined;
    if (!this.#isReady) return;
    const all = [...new Set(healths.flatMap((health) => health ?? []))];
    const { supervisor } = this.#parts;
    if (all.length === 0) void supervisor.tell('WATCHDOG=1', this.#status);
    else void supervisor.tell(`STATUS=not working: ${all.join(', ')}`);
  }

  #beginAttempt(
    from: Member,
    { id, name, address, standing }: Extract<FromWorker, { readonly say: 'attempt' }>,
  ): void {
    let retryAfter: number | undefined;
    try {
      from.attempts.set(id, this.#pauses.begin(name, address, standing));
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      retryAfter = error.retryAfter ?? 1;
    }
    from.send({ do: 'attempt', id, retryAfter });
  }
}
