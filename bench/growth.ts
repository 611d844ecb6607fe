/**
 * How the figures change with the size of the vault: processor time per request at several sizes, and wait times of people
 * and the command line at the largest. The sizes alternate in each round, so that changes in the speed of the machine
 * affect all of them equally.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo } from './answer.ts';
import { figureTable, median, type Table } from './figure.ts';
import { type FilledVault, fillVault, type Size } from './filled-vault.ts';
import { type LoadRequest, load } from './load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { type ServerProcess, serverCore, startServer } from './server-process.ts';
import { createAdministrator, measureWaits } from './waits.ts';

const scratch = join(import.meta.dirname, '..', 'build');

const usual: Size = { certificates: 1000, keys: 1000, auditEvents: 0 };
const sizes: readonly Size[] = [
  usual,
  { certificates: 100, keys: 10, auditEvents: 0 },
  { certificates: 10_000, keys: 10_000, auditEvents: 1_000_000 },
  { certificates: 100_000, keys: 10_000, auditEvents: 1_000_000 },
];

/** A vault of one size, and its server. */
type Served = { readonly size: Size; readonly vault: FilledVault; readonly server: ServerProcess };

/** A row of the table: the request to each of the vaults. */
type Line = {
  readonly name: string;
  readonly status: number;
  readonly requests: (served: Served) => LoadRequest[];
};

/** The requests of the other benchmarks with the same number of clients, and one per certificate. */
const lines: readonly Line[] = [
  ...requestKinds
    .filter(({ options }) => options === undefined)
    .map((kind) => ({
      ...kind,
      requests: ({ vault }: Served) => requestsOf(kind, vault, usual.keys),
    })),
  {
    name: 'full chain, 200, all different',
    status: 200,
    requests: ({ size, vault }) =>
      requestsOf(requestKinds[1] as RequestKind, vault, Math.min(20_000, size.certificates)),
  },
];

/** Measures the executable at `program`. In quick mode the largest vault is a tenth of its size. */
export async function measureGrowth(program: string, pace: Pace): Promise<Table[]> {
  const measured = pace.isQuick
    ? sizes.slice(0, 3).map((size) => ({ ...size, auditEvents: size.auditEvents / 10 }))
    : sizes;
  mkdirSync(scratch, { recursive: true });
  const directory = mkdtempSync(join(scratch, 'bench-'));
  const all: Served[] = [];
  try {
    for (const size of measured) {
      const place = join(directory, String(all.length));
      mkdirSync(place);
      all.push({ size, ...(await serve(program, place, size)) });
    }
    const head = ['processor time per request', ...all.map(({ size }) => nameOf(size))];
    const rows: string[][] = [];
    for (const line of lines) rows.push([line.name, ...cells(await costs(line, all, pace))]);
    const { size, vault, server } = all.at(-1) as Served;
    const figures = await measureWaits(program, server, vault.dataDir, pace);
    return [{ title: 'Growth', head, rows }, figureTable(`With ${nameOf(size)}`, figures)];
  } finally {
    for (const { server } of all) await server.stop();
    rmSync(directory, { recursive: true });
  }
}

async function serve(program: string, directory: string, size: Size): Promise<Omit<Served, 'size'>> {
  const vault = await fillVault(join(directory, 'data'), size);
  createAdministrator(program, vault.dataDir);
  const command = [
    program,
    'serve',
    '--data-dir',
    vault.dataDir,
    '--listen',
    '127.0.0.1:0',
    '--api-key-rate',
    '0',
  ];
  return { vault, server: await startServer(command, { core: serverCore, log: join(directory, 'log') }) };
}

function nameOf({ certificates, keys, auditEvents }: Size): string {
  const events = auditEvents === 0 ? '' : `, ${auditEvents.toLocaleString('en')} audit events`;
  return `${certificates.toLocaleString('en')} certificates, ${keys.toLocaleString('en')} keys${events}`;
}

/** Processor time of each server for each request, in µs, round by round. */
async function costs(line: Line, all: readonly Served[], { seconds, rounds }: Pace): Promise<number[][]> {
  const plans = all.map((served) => ({
    server: served.server,
    requests: line.requests(served),
    each: [] as number[],
  }));
  for (let round = 0; round <= rounds; round += 1) {
    for (const { server, requests, each } of plans) {
      if (round === 0) await assertAnswers(line, server, requests[0] as LoadRequest);
      const before = server.processorTime();
      const result = await load({ url: server.url, requests, seconds });
      // The first round does not count, because the engine is still compiling the code.
      if (round > 0) each.push(((server.processorTime() - before) / result.requests) * 1000);
    }
  }
  return plans.map(({ each }) => each);
}

async function assertAnswers(
  { name, status }: Line,
  server: ServerProcess,
  request: LoadRequest,
): Promise<void> {
  const answer = await answerTo(server.url, request);
  if (answer.status !== status) throw new Error(`${name}: unexpected status ${answer.status}`);
}

/** The medians, and the ratio of each size to the first one in the same round. */
function cells([first = [], ...others]: readonly (readonly number[])[]): string[] {
  const more = (each: readonly number[]) => median(each.map((cost, round) => cost / (first[round] ?? 0) - 1));
  return [
    `${median(first).toFixed(1)} µs`,
    ...others.map((each) => `${median(each).toFixed(1)} µs (${percent(more(each))})`),
  ];
}

function percent(share: number): string {
  const text = `${Math.abs(share * 100).toFixed(0)} %`;
  return share < 0 ? `−${text}` : `+${text}`;
}
