/**
 * The time that a request takes on the event loop, which all other requests wait for: processor time of the main
 * thread. The kinds of request alternate in each round, so that changes in the speed of the machine affect all of them
 * equally.
 */
import { join } from 'node:path';
import { median, type Table } from './figure.ts';
import { defaultSize, fillVault } from './filled-vault.ts';
import type { LoadRequest } from './load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { inScratch } from './scratch.ts';
import { assertStatus, loadServer, type ServerLoad } from './server-load.ts';
import { type ServerProcess, serveCommand, serverCore, startServer } from './server-process.ts';

/** The request that the others are compared with. */
const baseline = requestKind('full chain, 304');

/** 36 and 45 µs on a machine where a 304 takes 21, as a multiple of the 304. */
const goals: Readonly<Record<string, number>> = { 'full chain, 200': 36 / 21, 'private key, 200': 45 / 21 };

const head = ['request', 'loop µs', 'of a 304', 'to stay', 'all threads µs'];

/** Measures the executable at `program`. */
export async function measureLoopTime(program: string, pace: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const vault = await fillVault(join(directory, 'data'), defaultSize);
    const options = requestKinds.flatMap((kind) => kind.options ?? []);
    const command = [...serveCommand(program, vault.dataDir), ...options];
    const server = await startServer(command, { cores: serverCore, log: join(directory, 'log') });
    try {
      const lines = requestKinds.map((kind) => ({
        kind,
        requests: requestsOf(kind, vault, defaultSize.keys),
        rounds: [],
      }));
      await measureRounds(lines, server, pace);
      const base = lines.find(({ kind }) => kind === baseline) as Line;
      return [{ title: 'Loop time per request', head, rows: lines.map((line) => rowOf(line, base)) }];
    } finally {
      await server.stop();
    }
  });
}

type Line = {
  readonly kind: RequestKind;
  readonly requests: readonly LoadRequest[];
  readonly rounds: ServerLoad[];
};

async function measureRounds(
  lines: readonly Line[],
  server: ServerProcess,
  { seconds, rounds, turn }: Pace,
): Promise<void> {
  for (let round = 0; round <= rounds; round += 1) {
    await turn();
    for (const { kind, requests, rounds } of lines) {
      if (round === 0) await assertStatus(kind, server, requests[0] as LoadRequest);
      const result = await loadServer(kind, server, { requests, seconds });
      // The first round does not count, because the engine is still compiling the code.
      if (round > 0) rounds.push(result);
    }
  }
}

function rowOf({ kind, rounds }: Line, base: Line): (string | number)[] {
  const of = (value: (round: ServerLoad, index: number) => number) => median(rounds.map(value));
  const goal = goals[kind.name];
  return [
    kind.name,
    of(({ loopEach }) => loopEach),
    of(({ loopEach }, index) => loopEach / (base.rounds[index]?.loopEach ?? Number.NaN)),
    goal === undefined ? '' : `< ${goal.toFixed(2)}`,
    of(({ each }) => each),
  ];
}
