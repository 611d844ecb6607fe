/**
 * How the figures change with the size of the vault: processor time per request at several sizes, and wait times of
 * people and the command line at the largest. The sizes alternate in each round, so that changes in the speed of the
 * machine affect all of them equally.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Cell, figureTable, median, type Table } from './figure.ts';
import { defaultSize, type FilledVault, fillVault, type Size } from './filled-vault.ts';
import type { LoadRequest } from './load.ts';
import type { Pace } from './pace.ts';
import { requestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { inScratch } from './scratch.ts';
import { assertStatus, loadServer } from './server-load.ts';
import { type ServerProcess, serveCommand, serverCore, startServer } from './server-process.ts';
import { createAdministrator, measureWaits } from './waits.ts';

const sizes: readonly Size[] = [
  defaultSize,
  { certificates: 100, keys: 10, auditEvents: 0 },
  { certificates: 10_000, keys: 10_000, auditEvents: 1_000_000 },
  { certificates: 100_000, keys: 10_000, auditEvents: 1_000_000 },
];

/** A vault and its server. */
export type Served = { readonly vault: FilledVault; readonly server: ServerProcess };

/** A row of the table: the request to each of the vaults. */
export type Line<T extends Served> = {
  readonly name: string;
  readonly status: number;
  readonly requests: (served: T) => LoadRequest[];
};

type Sized = Served & { readonly size: Size };

/** The requests of the other benchmarks with the same number of clients, and one per certificate. */
const lines: readonly Line<Sized>[] = [
  ...requestKinds
    .filter(({ options }) => options === undefined)
    .map((kind) => ({
      ...kind,
      requests: ({ vault }: Sized) => requestsOf(kind, vault, defaultSize.keys),
    })),
  {
    name: 'full chain, 200, all different',
    status: 200,
    requests: ({ size, vault }) =>
      requestsOf(requestKind('full chain, 200'), vault, Math.min(20_000, size.certificates)),
  },
];

/** Measures the executable at `program`. In quick mode the largest vault is a tenth of its size. */
export async function measureGrowth(program: string, pace: Pace): Promise<Table[]> {
  const measured = pace.isQuick
    ? sizes.slice(0, 3).map((size) => ({ ...size, auditEvents: size.auditEvents / 10 }))
    : sizes;
  return inScratch(async (directory) => {
    const all: Sized[] = [];
    try {
      for (const size of measured) {
        const place = join(directory, String(all.length));
        mkdirSync(place);
        all.push({ size, ...(await serve(program, place, size)) });
      }
      const head = ['processor time per request', ...all.map(({ size }) => nameOf(size))];
      const rows: Cell[][] = [];
      for (const line of lines) rows.push(await costsOf(line, all, pace));
      const { size, vault, server } = all.at(-1) as Sized;
      const figures = await measureWaits(program, server, vault.dataDir, pace);
      return [{ title: 'Growth', head, rows }, figureTable(`With ${nameOf(size)}`, figures)];
    } finally {
      for (const { server } of all) await server.stop();
    }
  });
}

async function serve(program: string, directory: string, size: Size): Promise<Served> {
  const vault = await fillVault(join(directory, 'data'), size);
  createAdministrator(program, vault.dataDir);
  const command = serveCommand(program, vault.dataDir);
  return { vault, server: await startServer(command, { cores: serverCore, log: join(directory, 'log') }) };
}

function nameOf({ certificates, keys, auditEvents }: Size): string {
  const events = auditEvents === 0 ? '' : `, ${auditEvents.toLocaleString('en')} audit events`;
  return `${certificates.toLocaleString('en')} certificates, ${keys.toLocaleString('en')} keys${events}`;
}

/** The row of a request: its processor time at each server, and the ratio to that at the first one. */
export async function costsOf<T extends Served>(
  line: Line<T>,
  all: readonly T[],
  pace: Pace,
): Promise<Cell[]> {
  return [line.name, ...cells(await costs(line, all, pace))];
}

/** Processor time of each server for each request, in µs, round by round. */
async function costs<T extends Served>(
  line: Line<T>,
  all: readonly T[],
  { seconds, rounds, turn }: Pace,
): Promise<number[][]> {
  const plans = all.map((served) => ({
    server: served.server,
    requests: line.requests(served),
    each: [] as number[],
  }));
  for (let round = 0; round <= rounds; round += 1) {
    await turn();
    for (const { server, requests, each } of plans) {
      if (round === 0) await assertStatus(line, server, requests[0] as LoadRequest);
      const result = await loadServer(line, server, { requests, seconds });
      // The first round does not count, because the engine is still compiling the code.
      if (round > 0) each.push(result.each);
    }
  }
  return plans.map(({ each }) => each);
}

/** The medians, and the ratio of each size to the first one in the same round. */
function cells([first = [], ...others]: readonly (readonly number[])[]): Cell[] {
  const more = (each: readonly number[]) => median(each.map((cost, round) => cost / (first[round] ?? 0) - 1));
  return [
    { value: median(first), text: `${median(first).toFixed(1)} µs` },
    ...others.map((each) => ({
      value: median(each),
      text: `${median(each).toFixed(1)} µs (${percent(more(each))})`,
    })),
  ];
}

function percent(share: number): string {
  const text = `${Math.abs(share * 100).toFixed(0)} %`;
  return share < 0 ? `−${text}` : `+${text}`;
}
