/**
 * Polling clients beside downloads on a slow disk: how much the responses that need no disk (304) wait for the fsync of
 * those that do. Each delay of fsync has its own vault and server, and the delays alternate in each round.
 */
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { findCompiler, sharedLibrary } from '../test/torture/disk-shim.ts';
import { median, type Table } from './figure.ts';
import { defaultSize, type FilledVault, fillVault } from './filled-vault.ts';
import type { LoadRequest } from './load.ts';
import type { Pace } from './pace.ts';
import { requestKind, requestsOf } from './request-kinds.ts';
import { inScratch } from './scratch.ts';
import { assertStatus, loadServer, type ServerLoad } from './server-load.ts';
import { type ServerProcess, serveCommand, serverCore, startServer } from './server-process.ts';

/** Milliseconds added to each fsync. */
const delays = [0, 5, 20] as const;

/** Connections that poll, and that download at the same time. */
const polling = 16;
const downloading = 4;

/** For p99 beside downloads at the longest delay, as a multiple of that without a delay. */
const goal = 1.5;

const poll = requestKind('full chain, 304');
const download = requestKind('full chain, 200');

const title = '304 beside downloads on a slow disk';

/** Measures the executable at `program`, with fsync delayed by a preloaded library (slow-fsync.c). */
export async function measureSlowDisk(program: string, pace: Pace): Promise<Table[]> {
  if (process.platform !== 'linux' || findCompiler() === undefined)
    return [{ title, head: [''], rows: [['not measured: it needs Linux and a C compiler, cc or gcc']] }];
  return inScratch(async (directory) => {
    const library = sharedLibrary(join(import.meta.dirname, 'slow-fsync.c'), directory);
    const vault = await fillVault(join(directory, 'data'), defaultSize);
    const lines: Line[] = [];
    try {
      for (const delay of delays) {
        const dataDir = join(directory, `data-${delay}`);
        cpSync(vault.dataDir, dataDir, { recursive: true });
        const environment = { LD_PRELOAD: library, SLOW_FSYNC_MS: String(delay), UV_USE_IO_URING: '0' };
        const log = join(directory, `log-${delay}`);
        const command = serveCommand(program, dataDir);
        const server = await startServer(command, { cores: serverCore, log, environment });
        lines.push({ delay, server, rounds: [] });
      }
      await measureRounds(lines, vault, pace);
      const [first] = lines as [Line];
      return [{ title, head, rows: lines.map((line) => rowOf(line, first)) }];
    } finally {
      for (const { server } of lines) await server.stop();
    }
  });
}

/** The figures of polls alone, and of those beside downloads. */
const head = [
  'delay of fsync',
  'polls/s alone',
  'polls/s beside',
  'median ms alone',
  'median ms beside',
  'p99 ms alone',
  'p99 ms beside',
  'of alone',
  'of no delay',
  'to stay',
  'downloads/s',
];

type Round = { readonly alone: ServerLoad; readonly beside: ServerLoad; readonly downloads: ServerLoad };
type Line = { readonly delay: number; readonly server: ServerProcess; readonly rounds: Round[] };

async function measureRounds(
  lines: readonly Line[],
  vault: FilledVault,
  { seconds, rounds, turn }: Pace,
): Promise<void> {
  const polls = { requests: requestsOf(poll, vault, defaultSize.keys), seconds, connections: polling };
  const downloads = {
    requests: requestsOf(download, vault, defaultSize.keys),
    seconds,
    connections: downloading,
  };
  for (let round = 0; round <= rounds; round += 1) {
    await turn();
    for (const { server, rounds } of lines) {
      if (round === 0) {
        await assertStatus(poll, server, polls.requests[0] as LoadRequest);
        await assertStatus(download, server, downloads.requests[0] as LoadRequest);
      }
      const alone = await loadServer(poll, server, polls);
      const [beside, downloaded] = await Promise.all([
        loadServer(poll, server, polls),
        loadServer(download, server, downloads),
      ]);
      // The first round does not count, because the engine is still compiling the code.
      if (round > 0) rounds.push({ alone, beside, downloads: downloaded });
    }
  }
}

function rowOf({ delay, rounds }: Line, first: Line): (string | number)[] {
  const of = (value: (round: Round, index: number) => number) => median(rounds.map(value));
  return [
    `${delay} ms`,
    of(({ alone }) => alone.perSecond),
    of(({ beside }) => beside.perSecond),
    of(({ alone }) => alone.median),
    of(({ beside }) => beside.median),
    of(({ alone }) => alone.p99),
    of(({ beside }) => beside.p99),
    of(({ alone, beside }) => beside.p99 / alone.p99),
    of(({ beside }, index) => beside.p99 / (first.rounds[index]?.beside.p99 ?? Number.NaN)),
    delay === delays.at(-1) ? `< ${goal}` : '',
    of(({ downloads }) => downloads.perSecond),
  ];
}
