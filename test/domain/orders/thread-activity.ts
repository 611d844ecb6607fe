/**
 * Whether threads of this process work for it: keys that are made, signatures, files. Clocks that jump wait until they
 * do not, since on a busy machine such work takes longer than any number of turns of the event loop.
 */
import { createHook } from 'node:async_hooks';

const busy = new Set<number>();

createHook({
  trackPromises: false,
  init: (id, type) => {
    if (/REQUEST$|^FSREQ/.test(type)) busy.add(id);
  },
  before: (id) => {
    busy.delete(id);
  },
  destroy: (id) => {
    busy.delete(id);
  },
}).enable();

/** Whether a thread has not finished what it was given. */
export function isThreadBusy(): boolean {
  return busy.size > 0;
}
