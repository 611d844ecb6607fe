/**
 * A vault on PostgreSQL, served by one node and by two, beside the same vault on SQLite: requests, processor time of
 * nodes and database, transactions, renewals and disk space. The three take turns in each round, so that changes in the
 * speed of the machine affect all of them equally. Nodes, database and load share all processors.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { diskSpace } from './disk-space.ts';
import { median, type Table } from './figure.ts';
import { defaultSize, type FilledVault, fillVault } from './filled-vault.ts';
import { connections, type LoadRequest } from './load.ts';
import { MeasuredDatabase } from './measured-database.ts';
import { type Deployment, startDeployments } from './node-deployments.ts';
import { measureRenewals } from './node-renewals.ts';
import { type NodesLoad, together, workSince } from './nodes-load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKind, requestsOf } from './request-kinds.ts';
import { measureTrips, type Trips, tripsTable } from './round-trips.ts';
import { inScratch } from './scratch.ts';
import { assertStatus, loadServer } from './server-load.ts';

const poll = requestKind('full chain, 304');
const download = requestKind('full chain, 200');

/** Over one connection, no requests share a look at the database or a transaction. */
const loads: readonly LoadKind[] = [
  ...[poll, download, requestKind('private key, 200')].map((kind) => ({
    kind,
    name: kind.name,
    connections,
  })),
  ...[poll, download].map((kind) => ({ kind, name: `${kind.name}, one connection`, connections: 1 })),
];

type LoadKind = { readonly kind: RequestKind; readonly name: string; readonly connections: number };

/** The shortest time in which the engine compiles the code of a request. */
const warmUpSeconds = 2;

const title = 'One vault on SQLite and on PostgreSQL';
const head = [
  ...['request', 'vault', '/s', 'of SQLite', 'loop µs', 'of SQLite', 'node CPU µs', 'database CPU µs'],
  ...['batches/s', 'batches per request', 'WAL bytes'],
];

/** All processors, for the load as for the others. */
const cores = `0-${availableParallelism() - 1}`;

/** Measures the executable at `program`. */
export async function measureNodes(program: string, pace: Pace): Promise<Table[]> {
  const obstacle = MeasuredDatabase.obstacle();
  if (obstacle !== undefined) return [{ title, head: [''], rows: [[`not measured: ${obstacle}`]] }];
  return inScratch(async (directory) => {
    const vault = await fillVault(join(directory, 'data'), defaultSize);
    const server = await MeasuredDatabase.start();
    const deployments: Deployment[] = [];
    try {
      await startDeployments(program, directory, { vault, server, started: deployments });
      const scene = { vault, server, deployments };
      const lines = loads.flatMap((load) =>
        deployments.map((deployment): Line => ({ ...load, deployment, rounds: [] })),
      );
      const trips = await measureRounds(scene, lines, pace);
      const [onSqlite, onPostgres] = deployments as [Deployment, Deployment];
      return [
        { title, head, rows: lines.map((line) => rowOf(line, lines)) },
        tripsTable(trips),
        await measureRenewals({ program, vault, server, search: renewed(pace) }, deployments),
        await diskSpace(onSqlite.dataDir, server, onPostgres.url ?? ''),
      ];
    } finally {
      for (const { nodes } of deployments) for (const node of nodes) await node.stop();
      await server.remove();
    }
  });
}

/** What the certificates to renew have in their names: 111 of a thousand, or 11. */
function renewed({ isQuick }: Pace): string {
  return isQuick ? 'www99' : 'www9';
}

type Scene = {
  readonly vault: FilledVault;
  readonly server: MeasuredDatabase;
  readonly deployments: readonly Deployment[];
};

type Line = LoadKind & {
  readonly deployment: Deployment;
  readonly rounds: NodesLoad[];
};

/** Adds the rounds to the lines; returns what single requests took in each of them. */
async function measureRounds(
  { vault, server, deployments }: Scene,
  lines: readonly Line[],
  { seconds, rounds, turn }: Pace,
): Promise<Trips[]> {
  const polls = requestsOf(poll, vault, defaultSize.keys);
  const trips: Trips[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    await turn();
    for (const line of lines) {
      const { kind, deployment } = line;
      const requests = requestsOf(kind, vault, defaultSize.keys);
      const plan = { requests, server, seconds: round === 0 ? Math.max(seconds, warmUpSeconds) : seconds };
      if (round === 0) {
        for (const node of deployment.nodes) await assertStatus(kind, node, requests[0] as LoadRequest);
      }
      const result = await loadNodes(line, plan);
      // The first round does not count, because the engine is still compiling the code.
      if (round > 0) line.rounds.push(result);
    }
    const single = await measureTrips(deployments, polls);
    if (round > 0) trips.push(single);
  }
  return trips;
}

type Load = {
  readonly requests: readonly LoadRequest[];
  readonly seconds: number;
  readonly server: MeasuredDatabase;
};

/** Each node gets its share of the connections. */
async function loadNodes(
  { kind, deployment: { nodes, url }, connections }: Line,
  { requests, seconds, server }: Load,
): Promise<NodesLoad> {
  const plan = { requests, seconds, cores, connections: Math.ceil(connections / nodes.length) };
  const before = url === undefined ? undefined : await server.work();
  const loads = await Promise.all(nodes.map((node) => loadServer(kind, node, plan)));
  return together(loads, before === undefined ? undefined : workSince(before, await server.work()));
}

function rowOf({ kind, name, deployment, rounds }: Line, lines: readonly Line[]): (string | number)[] {
  const base = lines.find((line) => line.name === name)?.rounds ?? [];
  const of = (value: (load: NodesLoad, index: number) => number) => median(rounds.map(value));
  const share = (value: (load: NodesLoad) => number) =>
    of((load, index) => value(load) / value(base[index] as NodesLoad));
  const hasServer = deployment.url !== undefined;
  const batches = hasServer && kind.status === 200;
  return [
    ...[name, deployment.name],
    ...[of(({ perSecond }) => perSecond), share(({ perSecond }) => perSecond)],
    ...[of(({ loopEach }) => loopEach), share(({ loopEach }) => loopEach)],
    of(({ each }) => each),
    hasServer ? of(({ databaseEach }) => databaseEach) : '',
    batches ? of(({ batchesPerSecond }) => batchesPerSecond) : '',
    batches ? of(({ batchesEach }) => batchesEach) : '',
    batches ? of(({ loggedEach }) => loggedEach) : '',
  ];
}
