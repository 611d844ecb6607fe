/**
 * The metrics of all workers as one: the counts of those that are gone stay, so that no sum ever goes down, and how each
 * process is stands beside.
 */
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import { addedSeries, type Series } from '../../domain/health/meter.ts';
import type { Measured } from '../serving/open-metrics.ts';
import type { Member } from './worker-member.ts';

/** A worker that does not answer stands there with what it said last. */
const patience = 2 * second;

type Question = { readonly open: Set<Member>; readonly process: Series[]; readonly done: AbortController };

export class WorkerSeries {
  readonly #world: World;
  readonly #counts = new Map<Member, Series>();
  /** Whose counts are in `#gone`: what was on its way when they ended must not count twice. */
  readonly #ended = new WeakSet<Member>();
  readonly #questions = new Map<number, Question>();
  #gone: Series = {};
  #restarts = 0;
  #lastId = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Takes what a worker has counted so far. */
  note(member: Member, counts: Series): void {
    if (!this.#ended.has(member)) this.#counts.set(member, counts);
  }

  /** Takes the answer of a worker. */
  answer(member: Member, id: number, { counts, process }: Measured): void {
    this.note(member, counts);
    const question = this.#questions.get(id);
    if (question?.open.delete(member) !== true) return;
    question.process.push(process);
    if (question.open.size === 0) question.done.abort();
  }

  /** Keeps the counts of a worker that is gone. */
  gone(member: Member): void {
    this.#gone = addedSeries([this.#gone, this.#counts.get(member) ?? {}]);
    this.#counts.delete(member);
    this.#ended.add(member);
    this.#restarts += 1;
    for (const { open, done } of this.#questions.values()) {
      if (open.delete(member) && open.size === 0) done.abort();
    }
  }

  /** Asks these, and returns the series of all. */
  async gather(members: readonly Member[]): Promise<Series> {
    this.#lastId += 1;
    const id = this.#lastId;
    const question: Question = { open: new Set(members), process: [], done: new AbortController() };
    this.#questions.set(id, question);
    for (const member of members) member.send({ do: 'measure', id });
    await this.#world.sleep(patience, question.done.signal);
    this.#questions.delete(id);
    return {
      ...addedSeries([this.#gone, ...this.#counts.values()]),
      ...addedSeries(question.process),
      vault_workers: members.length,
      vault_worker_restarts_total: this.#restarts,
    };
  }
}
