/**
 * Requests per second of the executable and of a bare server that sends the same bytes, in alternating rounds, each on one
 * core; over HTTP and HTTPS, at full load and, for latency, at half load.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo } from './answer.ts';
import { median, type Table } from './figure.ts';
import { type FilledVault, fillVault } from './filled-vault.ts';
import { connections, type LoadRequest, load } from './load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { type ServerProcess, serverCore, startServer } from './server-process.ts';

const size = { certificates: 1000, keys: 1000, auditEvents: 0 };

/** On the disk of the project, because writes to a memory file system need no fsync. */
const scratch = join(import.meta.dirname, '..', 'build');

/** Measures the executable at `program`, at its default settings; its log goes to a file. */
export async function measureRequests(program: string, pace: Pace): Promise<Table[]> {
  mkdirSync(scratch, { recursive: true });
  const directory = mkdtempSync(join(scratch, 'bench-'));
  try {
    const vault = await fillVault(join(directory, 'data'), size);
    const serve = [
      program,
      'serve',
      '--data-dir',
      vault.dataDir,
      '--listen',
      '127.0.0.1:0',
      '--api-key-rate',
      '0',
    ];
    const tls = ['--tls-cert-file', vault.certFile, '--tls-key-file', vault.keyFile];
    const plain = await besideBare(directory, vault, serve, [], pace);
    const encrypted = await besideBare(
      directory,
      vault,
      [...serve, ...tls],
      [vault.certFile, vault.keyFile],
      pace,
    );
    return [
      { title: 'Requests over HTTP', head, rows: plain },
      { title: 'Requests over HTTPS, connections kept', head, rows: encrypted },
    ];
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const head = [
  'request',
  'vault /s',
  'bare /s',
  'share',
  'to reach',
  'vault CPU µs',
  'bare CPU µs',
  'CPU share',
  'p99 ms at half load',
  'of bare',
];

type Row = readonly (string | number)[];

async function besideBare(
  directory: string,
  vault: FilledVault,
  serve: readonly string[],
  bareTls: readonly string[],
  pace: Pace,
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const kind of requestKinds) {
    const requests = requestsOf(kind, vault, size.keys);
    const command = [...serve, ...(kind.options ?? [])];
    const server = await startServer(command, { core: serverCore, log: join(directory, 'log') });
    try {
      const bare = await startBare(directory, server, kind, requests[0] as LoadRequest, bareTls);
      try {
        rows.push(await compare(kind, { vault: server, bare }, requests, pace));
      } finally {
        await bare.stop();
      }
    } finally {
      await server.stop();
    }
  }
  return rows;
}

/** A bare server that sends the vault's response to this request. */
async function startBare(
  directory: string,
  vault: ServerProcess,
  { name, status }: RequestKind,
  request: LoadRequest,
  tls: readonly string[],
): Promise<ServerProcess> {
  const answer = await answerTo(vault.url, request);
  if (answer.status !== status)
    throw new Error(`${name}: unexpected status ${answer.status}: ${answer.body}`);
  const file = join(directory, 'answer.json');
  writeFileSync(file, JSON.stringify(answer));
  const program = join(import.meta.dirname, 'bare-server.ts');
  return startServer([process.execPath, program, file, ...tls], { core: serverCore });
}

type Pair<T> = { readonly vault: T; readonly bare: T };
type Round = { readonly perSecond: number; readonly each: number };

async function compare(
  kind: RequestKind,
  servers: Pair<ServerProcess>,
  requests: readonly LoadRequest[],
  { seconds, rounds }: Pace,
): Promise<Row> {
  const measure = async (server: ServerProcess, pauseMs?: number) => {
    const before = server.processorTime();
    const plan = { url: server.url, requests, seconds, ...(pauseMs !== undefined && { pauseMs }) };
    const result = await load(plan);
    const refused = kind.status >= 400 ? result.requests : 0;
    if (result.refused !== refused)
      throw new Error(`${kind.name}: ${result.refused} responses with a status of 400 or above`);
    return { ...result, each: ((server.processorTime() - before) / result.requests) * 1000 };
  };
  await measure(servers.vault);
  await measure(servers.bare);
  const measured: Pair<Round>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    measured.push({ bare: await measure(servers.bare), vault: await measure(servers.vault) });
  }
  const half = async (which: keyof Pair<unknown>) => {
    const full = median(measured.map((pair) => pair[which].perSecond));
    const results: number[] = [];
    // The pause at which all connections together reach half of the full rate.
    for (let round = 0; round < rounds; round += 1) {
      results.push((await measure(servers[which], (connections / full) * 1000)).p99);
    }
    return median(results);
  };
  const of = (value: (pair: Pair<Round>) => number) => median(measured.map(value));
  return [
    kind.name,
    of(({ vault }) => vault.perSecond),
    of(({ bare }) => bare.perSecond),
    of(({ vault, bare }) => vault.perSecond / bare.perSecond),
    kind.goal,
    of(({ vault }) => vault.each),
    of(({ bare }) => bare.each),
    of(({ vault, bare }) => bare.each / vault.each),
    await half('vault'),
    await half('bare'),
  ];
}
