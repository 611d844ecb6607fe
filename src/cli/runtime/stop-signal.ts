/** The signals that ask a server to stop. */

/** Aborted at the first SIGTERM or SIGINT; a second one ends the process at once, as people expect of ^C. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () => {
      stop.abort(name);
    });
  }
  return stop.signal;
}
