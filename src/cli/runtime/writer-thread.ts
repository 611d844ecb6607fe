/** Starts the thread of `vault serve` that writes to the database (src/writer-thread.ts). */
import { join } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';

/**
 * The thread. In the executable it loads SQLite from the path `library`. Closing the database ends it; an error that
 * ends it is an uncaught exception of this process. Undefined where a thread cannot load that library.
 */
export function startWriterThread(library?: string): Worker | undefined {
  // Outside Linux, the library was loaded from a file that is gone; another copy would drop the file locks of this one.
  if (isSea() && library === undefined) return undefined;
  const options = { name: 'writer', env: {}, stdin: false, workerData: { library } };
  return isSea()
    ? new Worker(Buffer.from(getRawAsset('writer-thread.js')).toString('utf8'), { ...options, eval: true })
    : new Worker(join(import.meta.dirname, '..', '..', 'writer-thread.ts'), options);
}
