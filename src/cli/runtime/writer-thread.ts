/** Starts the thread of `vault serve` that writes to the database (src/writer-thread.ts). */
import { join } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';
import { Worker } from 'node:worker_threads';
import { sharedLibrary } from '../../domain/presence/vault-database.ts';

/** The thread; the caller ends it by closing the database. An error that ends it is an uncaught exception of this process. */
export function startWriterThread(): Worker {
  const options = { name: 'writer', env: {}, stdin: false, workerData: sharedLibrary() };
  return isSea()
    ? new Worker(Buffer.from(getRawAsset('writer-thread.js')).toString('utf8'), { ...options, eval: true })
    : new Worker(join(import.meta.dirname, '..', '..', 'writer-thread.ts'), options);
}
