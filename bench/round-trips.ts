/**
 * What the journey to the database adds to a response that needs nothing else: a 304 over one connection, one after
 * another. The vaults take turns request by request.
 */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { median, type Table } from './figure.ts';
import type { LoadRequest } from './load.ts';
import type { Deployment } from './node-deployments.ts';

/** Milliseconds that the journey may add at the median, with the database on the same machine. */
const goal = 0.5;

/** Requests to each vault in a round. */
const each = 300;

/** Milliseconds of each request, by the name of the vault. */
export type Trips = ReadonlyMap<string, readonly number[]>;

/** Sends the requests in turn, to the last node of each vault. Rejects if a response is not a 304. */
export async function measureTrips(
  deployments: readonly Deployment[],
  requests: readonly LoadRequest[],
): Promise<Trips> {
  const agent = new Agent({ keepAlive: true });
  const trips = new Map(deployments.map(({ name }): [string, number[]] => [name, []]));
  try {
    for (let index = 0; index < each; index += 1) {
      const request = requests[index % requests.length] as LoadRequest;
      for (const { name, nodes } of deployments) {
        const url = nodes.at(-1)?.url ?? '';
        const started = performance.now();
        await notModified(url, request, agent);
        trips.get(name)?.push(performance.now() - started);
      }
    }
    return trips;
  } finally {
    agent.destroy();
  }
}

async function notModified(url: string, { path, headers }: LoadRequest, agent: Agent): Promise<void> {
  const sent = get(`${url}${path}`, { agent, headers });
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  await once(response.resume(), 'end');
  if (response.statusCode !== 304) throw new Error(`expected 304, not ${response.statusCode}`);
}

/** The medians of the rounds' medians, and what they are above the first vault's in the same round. */
export function tripsTable(rounds: readonly Trips[]): Table {
  const [base = '', ...others] = rounds[0]?.keys() ?? [];
  const medianOf = (trips: Trips, name: string) => median(trips.get(name) ?? []);
  const whole = (name: string) => median(rounds.map((trips) => medianOf(trips, name)));
  const added = (name: string) =>
    median(rounds.map((trips) => medianOf(trips, name) - medianOf(trips, base)));
  return {
    title: 'A 304 over one connection, one after another',
    head: ['vault', 'median ms', 'added ms', 'to stay'],
    rows: [
      [base, whole(base), '', ''],
      ...others.map((name) => [name, whole(name), added(name), `< ${goal}`]),
    ],
  };
}
