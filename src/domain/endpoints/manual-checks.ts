/** Checks that people ask for, which wait for the outcome: bounded, because each may take ten seconds. */
import { Problem } from '../../base/problem.ts';
import { type CheckContext, checkEndpoint } from './endpoint-checking.ts';
import type { Endpoint } from './endpoints.ts';

/** Per process. */
const checksAtOnce = 16;

let running = 0;

/** Checks the endpoint with this id now. Throws `endpoint_not_found`, and `rate_limited` if too many checks run. */
export async function checkNow(vault: CheckContext, id: number, signal: AbortSignal): Promise<Endpoint> {
  if (running >= checksAtOnce) {
    throw new Problem('rate_limited', {
      detail: `${checksAtOnce} checks of endpoints are running; retry in a moment.`,
      retryAfter: 5,
    });
  }
  running += 1;
  try {
    return await checkEndpoint(vault, id, signal);
  } finally {
    running -= 1;
  }
}
