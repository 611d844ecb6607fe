/** A thread with a client for raw HTTP: what the client does is not in the turns of the server's event loop. */
import { parentPort } from 'node:worker_threads';
import { converse } from '../../harness/http/raw.ts';

/** A request to the thread, and, with the same `id`, its answer. */
export type Question = { readonly id: number; readonly url: string; readonly bytes: string };
export type Answer = { readonly id: number; readonly received: string };

parentPort?.on('message', async ({ id, url, bytes }: Question) => {
  const received = await converse(url, bytes);
  parentPort?.postMessage({ id, received } satisfies Answer);
});
