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

/**
 * Aborts at the first SIGTERM, SIGINT or SIGHUP; a second one ends the process immediately. `cleanUp` runs when the
 * process exits, however it does, except by SIGKILL.
 */
export function stopAndCleanUp(cleanUp: () => void): AbortSignal {
  const stop = new AbortController();
  process.once('exit', cleanUp);
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(1);
      stop.abort(name);
    });
  }
  return stop.signal;
}
