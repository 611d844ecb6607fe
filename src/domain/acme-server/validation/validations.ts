/**
 * The validations that run in this process, with limits: a client in a loop, or with slow servers, takes nothing from
 * others. They end with the process; a challenge whose validation did not finish is validated again when its client
 * asks for it.
 */
import { second } from '../../../base/duration.ts';
import { KeyedMutex, TurnAborted } from '../../../base/keyed-mutex.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

const atOnce = 64;
const atOncePerClient = 16;
/** Running and waiting ones. */
const most = 2000;
const maxPerClient = 200;

const pauseWhenFull = 10 * second;

export class Validations {
  /** By challenge. */
  readonly #running = new Map<string, Promise<void>>();
  readonly #perClient = new Map<number, number>();
  readonly #turns = new KeyedMutex();
  readonly #stop = new AbortController();

  isRunning(key: string): boolean {
    return this.#running.has(key);
  }

  /** Throws `rateLimited` if the client, or all clients together, have too many validations waiting. */
  requireRoom(clientId: number): void {
    const own = this.#perClient.get(clientId) ?? 0;
    if (own < maxPerClient && this.#running.size < most) return;
    const whose = own < maxPerClient ? 'the vault' : 'this client';
    throw new AcmeProblem(
      'rateLimited',
      `Too many challenges of ${whose} are being validated; retry in a moment.`,
      {
        retryAfterMs: pauseWhenFull,
      },
    );
  }

  /**
   * Runs `work` in the background as soon as its turn has come, unless one with this key runs already. `work` must not
   * reject except when its signal is aborted, which happens when the process stops.
   */
  begin(key: string, clientId: number, work: (signal: AbortSignal) => Promise<void>): void {
    if (this.isRunning(key) || this.#stop.signal.aborted) return;
    const { signal } = this.#stop;
    this.#perClient.set(clientId, (this.#perClient.get(clientId) ?? 0) + 1);
    const all = () => this.#turns.take('all', () => work(signal), { signal, atOnce });
    const running = this.#turns
      .take(`client ${clientId}`, all, { signal, atOnce: atOncePerClient })
      .catch((error: unknown) => {
        if (!(error instanceof TurnAborted)) throw error;
      })
      .finally(() => {
        this.#running.delete(key);
        const left = (this.#perClient.get(clientId) ?? 1) - 1;
        if (left > 0) this.#perClient.set(clientId, left);
        else this.#perClient.delete(clientId);
      });
    this.#running.set(key, running);
  }

  /** Resolves when no validation runs or waits. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values());
  }

  /** Ends all validations without a verdict, and starts no other. */
  async end(): Promise<void> {
    this.#stop.abort(new Error('the vault stops'));
    await this.idle();
  }
}
