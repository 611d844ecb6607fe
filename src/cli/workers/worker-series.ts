/**
 * Aggregates the metrics of all workers. Keeps the counters of exited workers so that sums never decrease, and adds the
 * process statistics of each worker.
 */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import { addedSeries, type Series } from '../../domain/health/meter.ts';
import type { Measured } from '../serving/open-metrics.ts';
import type { Member } from './worker-member.ts';

/** How long to wait for a worker; after that, use its last report. */
const answerTimeout = 2 * second;

type Question = { readonly open: Set<Member>; readonly process: Series[]; readonly done: AbortController };

export class WorkerSeries {
  readonly #world: World;
  readonly #counts = new Map<Member, Series>();
  /** Workers whose counters are in `#gone`, so that their late reports do not count twice. */
  readonly #ended = new WeakSet<Member>();
  readonly #questions = new Map<number, Question>();
  #gone: Series = {};
  #restarts = 0;
  #lastId = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Stores the counters that a worker has reported. */
  note(member: Member, counts: Series): void {
    if (!this.#ended.has(member)) this.#counts.set(member, counts);
  }

  /** Stores the answer of a worker. */
  answer(member: Member, id: number, { counts, process }: Measured): void {
    this.note(member, counts);
    const question = this.#questions.get(id);
    if (question?.open.delete(member) !== true) return;
    question.process.push(process);
    if (question.open.size === 0) question.done.abort();
  }

  /** Keeps the counters of a worker that has exited. */
  gone(member: Member): void {
    this.#gone = addedSeries([this.#gone, this.#counts.get(member) ?? {}]);
    this.#counts.delete(member);
    this.#ended.add(member);
    this.#restarts += 1;
    for (const { open, done } of this.#questions.values()) {
      if (open.delete(member) && open.size === 0) done.abort();
    }
  }

  /** Collects the series of these workers and returns those of all. */
  async gather(members: readonly Member[]): Promise<Series> {
    this.#lastId += 1;
    const id = this.#lastId;
    const question: Question = { open: new Set(members), process: [], done: new AbortController() };
    this.#questions.set(id, question);
    for (const member of members) member.send({ do: 'measure', id });
    await this.#world.sleep(answerTimeout, question.done.signal);
    this.#questions.delete(id);
    return {
      ...addedSeries([this.#gone, ...this.#counts.values()]),
      ...addedSeries(question.process),
      vault_workers: members.length,
      vault_worker_restarts_total: this.#restarts,
    };
  }
}
