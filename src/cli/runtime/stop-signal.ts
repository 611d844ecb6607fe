/** Stops on SIGTERM and SIGINT. */

/** Aborts at the first SIGTERM or SIGINT. A second one ends the process immediately, as users expect of ^C. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () => {
      stop.abort(name);
    });
  }
  return stop.signal;
}
