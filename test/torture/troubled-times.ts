/**
 * Requests with the times at which they were sent and answered, and the times at which something was broken: only then
 * may a request fail.
 */
import { type Answer, ask, type Question } from './running-vault.ts';

export type Asked = {
  readonly what: string;
  readonly sent: number;
  readonly answered: number;
  /** Undefined if none came, or one of another party than a node. */
  readonly answer: Answer | undefined;
  /** What failed, if anything did: the request may have been carried out or not. */
  readonly failure: string | undefined;
};

/** As much of the last requests as helps to understand a broken promise. */
const kept = 400;

export class TroubledTimes {
  readonly #times: { readonly from: number; to: number }[] = [];
  /** The last requests, oldest first. */
  readonly last: Asked[] = [];
  /** The number of requests that failed while something was broken. */
  excused = 0;
  /** Failures while nothing was broken. */
  readonly broken: string[] = [];

  /** Something breaks now. */
  begin(): void {
    if (!this.isNow) this.#times.push({ from: performance.now(), to: Number.POSITIVE_INFINITY });
  }

  /** All is whole again. */
  end(): void {
    const last = this.#times.at(-1);
    if (last !== undefined) last.to = Math.min(last.to, performance.now());
  }

  get isNow(): boolean {
    return this.#times.at(-1)?.to === Number.POSITIVE_INFINITY;
  }

  /** Sends a request. Never rejects: what fails is in the result, and in `broken` if nothing excuses it. */
  async ask(url: string, question: Question = {}): Promise<Asked> {
    const what = `${question.method ?? 'GET'} ${url}`;
    const sent = performance.now();
    let answer: Answer | undefined;
    let failure: string | undefined;
    try {
      answer = await ask(url, question);
      if (answer.status >= 500) failure = `${answer.status} ${answer.body.slice(0, 300)}`;
    } catch (error) {
      failure = String(error);
    }
    return this.note({ what, sent, answered: performance.now(), answer, failure });
  }

  /** Judges what was asked by other means. Returns it. */
  note(asked: Asked): Asked {
    const { what, sent, failure } = asked;
    this.last.push(asked);
    if (this.last.length > kept) this.last.shift();
    if (failure === undefined) return asked;
    if (this.#overlap(asked)) this.excused += 1;
    else this.broken.push(`${what} failed while nothing was broken: ${failure} (at ${Math.round(sent)} ms)`);
    return asked;
  }

  #overlap({ sent, answered }: Pick<Asked, 'sent' | 'answered'>): boolean {
    return this.#times.some(({ from, to }) => sent < to && answered > from);
  }
}
