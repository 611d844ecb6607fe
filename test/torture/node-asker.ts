/**
 * How users of several nodes ask: through the balancer, with each deed in the ledger, and at every node at once, also
 * at those that are paused and answer when they go on.
 */
import * as http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Deed, Facts, Ledger, type Said } from './ledger.ts';
import type { Answer, Question } from './running-vault.ts';
import type { Asked, TroubledTimes } from './troubled-times.ts';

export type Request = Question & {
  readonly path: string;
  /** Statuses of an answer that says that it was done, and of one that says that it was not. */
  readonly good: readonly number[];
  readonly refused?: readonly number[];
  /** From this time on it may also be refused with `refused`, else always. Asked when the answer is there. */
  readonly mayEndAt?: () => number;
  /** With whose credentials, for messages. */
  readonly as?: string;
};

export type Done = Asked & { readonly answer: Answer; readonly said: Said };

export class NodeAsker {
  readonly troubles: TroubledTimes;
  readonly #url: string;
  readonly #origins: readonly string[];
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  readonly #ledger = new Ledger();
  readonly #facts = new Facts();
  readonly #asking = new Set<Promise<void>>();
  #applied = 0;
  /** The broken promises so far. */
  readonly broken: string[] = [];
  /** Answers that had to agree with one of another node. */
  compared = 0;

  /** `url` is that of the balancer, `origins` are the nodes. */
  constructor(url: string, origins: readonly string[], troubles: TroubledTimes) {
    this.#url = url;
    this.#origins = origins;
    this.troubles = troubles;
  }

  /** What the answers so far say. */
  known(): Facts {
    const { entries } = this.#ledger;
    for (const entry of entries.slice(this.#applied)) this.#facts.apply(entry);
    this.#applied = entries.length;
    return this.#facts;
  }

  /** A form as the console sends it. */
  form(method: string, path: string, cookie: string | undefined) {
    const headers = { Origin: this.#url, ...(cookie !== undefined && { Cookie: cookie }) };
    return { method, path, headers };
  }

  /** Asks and records the deed. Undefined if it was refused, or if it may have happened or not. */
  async deed(
    begun: Deed,
    request: Request,
    said: (answer: Answer) => Said = () => ({}),
  ): Promise<Done | undefined> {
    const deed = this.#ledger.begin(begun);
    const asked = await this.troubles.ask(this.#url + request.path, { agent: this.#agent, ...request });
    const { answer, failure } = asked;
    if (answer === undefined || failure !== undefined) {
      this.#ledger.end(deed, { is: 'unknown' });
      // Where nothing answers, everybody would ask without end.
      await delay(20);
    } else if (request.good.includes(answer.status)) {
      const done = { ...asked, answer, said: said(answer) };
      this.#ledger.end(deed, { is: 'done', said: done.said });
      return done;
    } else {
      this.#ledger.end(deed, { is: 'refused' });
      const isOver = asked.answered > (request.mayEndAt?.() ?? 0);
      const times = `sent at ${Math.round(asked.sent)} ms, answered at ${Math.round(asked.answered)} ms`;
      this.expect(
        isOver && request.refused?.includes(answer.status) === true,
        `${asked.what} ${request.as ?? ''}: ${answer.status} ${answer.body} (${times})`,
      );
    }
    return undefined;
  }

  /** Asks and records it. Rejects if it was not done. */
  async must(
    begun: Deed,
    request: Omit<Request, 'good'>,
    said: (answer: Answer) => Said = () => ({}),
  ): Promise<Said> {
    const done = await this.deed(begun, { ...request, good: [200, 201] }, said);
    if (done !== undefined) return done.said;
    throw new Error(`${begun.kind}: ${[...this.broken, ...this.troubles.broken].join()}`);
  }

  /**
   * Does it by other means than a request, and records it. Undefined if it failed, or if it may have happened or not; a
   * failure is a broken promise unless something was broken meanwhile.
   */
  async work(
    begun: Deed,
    what: string,
    work: () => Promise<{ readonly said: Said } | { readonly failure: string | undefined }>,
  ): Promise<Said | undefined> {
    const deed = this.#ledger.begin(begun);
    const sent = performance.now();
    const outcome = await work();
    const answered = performance.now();
    const failure = 'failure' in outcome ? outcome.failure : undefined;
    this.troubles.note({ what, sent, answered, answer: undefined, failure });
    if ('said' in outcome) {
      this.#ledger.end(deed, { is: 'done', said: outcome.said });
      return outcome.said;
    }
    this.#ledger.end(deed, { is: 'unknown' });
    // Where the database does not answer, commands would follow each other without end.
    await delay(200);
    return undefined;
  }

  /** Records what a command has done. */
  done(begun: Deed, said: Said): void {
    this.#ledger.end(this.#ledger.begin(begun), { is: 'done', said });
  }

  expect(holds: boolean, sentence: string): void {
    this.compared += 1;
    if (!holds) this.broken.push(sentence);
  }

  /**
   * Asks every node without waiting for the answers. Those that come after the time that `until` tells may be others.
   */
  everywhere(
    path: string,
    headers: Readonly<Record<string, string>>,
    statuses: readonly number[],
    why: string,
    until: () => number = () => Number.POSITIVE_INFINITY,
  ): void {
    for (const origin of this.#origins) {
      const asking = this.troubles.ask(origin + path, { headers }).then(({ answer, failure, ...asked }) => {
        if (answer === undefined || failure !== undefined || asked.answered > until()) return;
        const times = `sent at ${Math.round(asked.sent)} ms, answered at ${Math.round(asked.answered)} ms`;
        this.expect(
          statuses.includes(answer.status),
          `${why}, and then ${asked.what} got ${answer.status} (${times})`,
        );
      });
      this.#asking.add(asking);
      void asking.finally(() => this.#asking.delete(asking));
    }
  }

  /** Waits for the answers of `everywhere`. */
  async answered(): Promise<void> {
    await Promise.all(this.#asking);
  }

  end(): void {
    this.#agent.destroy();
  }
}
