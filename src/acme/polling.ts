/** Asking again until something has happened: soon at first, then less often, and never before the CA wants it. */
import { minute, second } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import { AcmeError } from './acme-error.ts';

const firstPause = second / 4;
const longestPause = 15 * second;
/** What a CA asks beyond this is not obeyed: asking once a minute hurts nobody. */
const longestObeyed = minute;

/**
 * Asks until `outcome` finds one in the answer; what it throws ends the asking too. Pauses are 0.25 s, doubled up to 15 s,
 * or as long as the answer's Retry-After wants, up to a minute. Throws AcmeError `aborted` as soon as the signal is.
 */
export async function poll<Answer extends { readonly retryAfterMs: number | undefined }, Outcome>(
  world: World,
  signal: AbortSignal,
  ask: () => Promise<Answer>,
  outcome: (answer: Answer) => Outcome | undefined | Promise<Outcome | undefined>,
): Promise<Outcome> {
  for (let pause = firstPause; ; pause = Math.min(2 * pause, longestPause)) {
    const answer = await ask();
    const found = await outcome(answer);
    if (found !== undefined) return found;
    await world.sleep(Math.max(pause, Math.min(answer.retryAfterMs ?? 0, longestObeyed)), signal);
    if (signal.aborted) throw new AcmeError('aborted', 'waiting for the CA was canceled');
  }
}
