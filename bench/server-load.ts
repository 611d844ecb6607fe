/**
 * Load on a server under measurement: checks the responses, and divides the server's processor time by the requests.
 */
import { answerTo } from './answer.ts';
import { type LoadPlan, type LoadRequest, type LoadResult, load } from './load.ts';
import type { ServerProcess } from './server-process.ts';

export type ServerLoad = LoadResult & {
  /** Processor time per request in µs: of all threads, and of the main thread. */
  readonly each: number;
  readonly loopEach: number;
};

/** A request with the status of its responses. */
type Kind = { readonly name: string; readonly status: number };

/** Runs the load. Throws if the statuses of the responses are not those of `kind`. */
export async function loadServer(
  kind: Kind,
  server: ServerProcess,
  plan: Omit<LoadPlan, 'url'>,
): Promise<ServerLoad> {
  const before = { all: server.processorTime(), loop: server.loopTime() };
  const result = await load({ url: server.url, ...plan });
  const refused = kind.status >= 400 ? result.requests : 0;
  if (result.refused !== refused)
    throw new Error(`${kind.name}: ${result.refused} responses with a status of 400 or above`);
  const perRequest = (milliseconds: number) => (milliseconds / result.requests) * 1000;
  return {
    ...result,
    each: perRequest(server.processorTime() - before.all),
    loopEach: perRequest(server.loopTime() - before.loop),
  };
}

/** Throws unless the server responds to this request with the status of `kind`. */
export async function assertStatus(kind: Kind, server: ServerProcess, request: LoadRequest): Promise<void> {
  const { status, body } = await answerTo(server.url, request);
  if (status !== kind.status) throw new Error(`${kind.name}: unexpected status ${status}: ${body}`);
}
