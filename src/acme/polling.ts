/** Polls until something has happened: quickly at first, then more slowly, and never before the CA's Retry-After. */
import { minute, second } from '../base/duration.ts';
import type { World } from '../base/world.ts';
import { AcmeError } from './acme-error.ts';

const firstPause = second / 4;
const longestPause = 15 * second;
/** A longer Retry-After is ignored: polling once a minute is harmless. */
const longestObeyed = minute;

/**
 * Polls until `outcome` returns a result or throws. Pauses are 0.25 s, doubled up to 15 s, or those of the Retry-After
 * header, up to a minute. Throws AcmeError `aborted` as soon as the signal is aborted.
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
