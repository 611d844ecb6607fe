/** SIGHUP, which asks a server to reload its settings. Node would end the process without a word. */
import { isatty } from 'node:tty';

const stderr = 2;

export type Hangups = {
  /**
   * Calls `reload` for each signal, one call after the other; signals that arrive meanwhile count as one. A signal from
   * before is delivered at once. `reload` must not reject.
   */
  readonly onReload: (reload: () => Promise<void>) => void;
};

/**
 * Catches SIGHUP from now on. If it means that the terminal of the process was closed, the process ends as without
 * this.
 */
export function catchHangups(): Hangups {
  const hadTerminal = isatty(stderr);
  let isAsked = false;
  let isBusy = false;
  let reload: (() => Promise<void>) | undefined;
  const run = async () => {
    if (reload === undefined || isBusy) return;
    isBusy = true;
    while (isAsked) {
      isAsked = false;
      await reload();
    }
    isBusy = false;
  };
  const caught = () => {
    if (hadTerminal && !isatty(stderr)) {
      process.off('SIGHUP', caught);
      process.kill(process.pid, 'SIGHUP');
      return;
    }
    isAsked = true;
    void run();
  };
  process.on('SIGHUP', caught);
  return {
    onReload: (given) => {
      reload = given;
      void run();
    },
  };
}
