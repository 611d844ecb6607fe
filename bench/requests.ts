/**
 * Requests per second of the executable and of a bare server that sends the same bytes, in alternating rounds, each on
 * one core; over HTTP and HTTPS, at full load and, for latency, at half load.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerTo } from './answer.ts';
import { median, type Table } from './figure.ts';
import { defaultSize, type FilledVault, fillVault } from './filled-vault.ts';
import { connections, type LoadRequest } from './load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { inScratch } from './scratch.ts';
import { loadServer } from './server-load.ts';
import {
  bothCores,
  type Cores,
  loadCore,
  type ServerProcess,
  serveCommand,
  serverCore,
  startServer,
} from './server-process.ts';

/** Measures the executable at `program`, at its default settings; its log goes to a file. */
export async function measureRequests(program: string, pace: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const vault = await fillVault(join(directory, 'data'), defaultSize);
    const setup: Setup = {
      ...{ directory, vault, tls: [], kinds: requestKinds },
      ...{ serve: serveCommand(program, vault.dataDir), serverCores: serverCore, loadCores: loadCore },
    };
    const plain = await besideBare(setup, pace);
    const encrypted = await besideBare({ ...setup, tls: [vault.certFile, vault.keyFile] }, pace);
    return [
      { title: 'Requests over HTTP', head, rows: plain },
      { title: 'Requests over HTTPS, connections kept', head, rows: encrypted },
    ];
  });
}

/** Measures downloads where the vault can use a second core, which it shares with the load, as the bare server does. */
export async function measureTwoCores(program: string, pace: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const vault = await fillVault(join(directory, 'data'), defaultSize);
    const kinds = [requestKind('full chain, 200'), requestKind('private key, 200')];
    const rows = await besideBare(
      {
        ...{ directory, vault, tls: [], kinds },
        ...{ serve: serveCommand(program, vault.dataDir), serverCores: bothCores, loadCores: bothCores },
      },
      pace,
    );
    return [{ title: 'Downloads over HTTP, server and load on the same two cores', head, rows }];
  });
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

type Setup = {
  readonly directory: string;
  readonly vault: FilledVault;
  /** The command line of the vault, without HTTPS. */
  readonly serve: readonly string[];
  /** The paths of the certificate and its key, or none for HTTP. */
  readonly tls: readonly string[];
  readonly kinds: readonly RequestKind[];
  readonly serverCores: Cores;
  readonly loadCores: Cores;
};

async function besideBare(setup: Setup, pace: Pace): Promise<Row[]> {
  const { directory, vault, serve, tls, kinds, serverCores: cores, loadCores } = setup;
  const [certFile = '', keyFile = ''] = tls;
  const https = tls.length > 0 ? ['--tls-cert-file', certFile, '--tls-key-file', keyFile] : [];
  const rows: Row[] = [];
  for (const kind of kinds) {
    const requests = requestsOf(kind, vault, defaultSize.keys);
    const command = [...serve, ...https, ...(kind.options ?? [])];
    const server = await startServer(command, { cores, log: join(directory, 'log') });
    try {
      const bare = await startBare(setup, server, kind, requests[0] as LoadRequest);
      try {
        rows.push(await compare(kind, { vault: server, bare }, { requests, cores: loadCores }, pace));
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
  { directory, tls, serverCores }: Setup,
  vault: ServerProcess,
  { name, status }: RequestKind,
  request: LoadRequest,
): Promise<ServerProcess> {
  const answer = await answerTo(vault.url, request);
  if (answer.status !== status)
    throw new Error(`${name}: unexpected status ${answer.status}: ${answer.body}`);
  const file = join(directory, 'answer.json');
  writeFileSync(file, JSON.stringify(answer));
  const program = join(import.meta.dirname, 'bare-server.ts');
  return startServer([process.execPath, program, file, ...tls], { cores: serverCores });
}

type Pair<T> = { readonly vault: T; readonly bare: T };
type Round = { readonly perSecond: number; readonly each: number };

async function compare(
  kind: RequestKind,
  servers: Pair<ServerProcess>,
  plan: { readonly requests: readonly LoadRequest[]; readonly cores: Cores },
  { seconds, rounds, turn }: Pace,
): Promise<Row> {
  const measure = (server: ServerProcess, pauseMs?: number) =>
    loadServer(kind, server, { ...plan, seconds, ...(pauseMs !== undefined && { pauseMs }) });
  await measure(servers.vault);
  await measure(servers.bare);
  const measured: Pair<Round>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await turn();
    measured.push({ bare: await measure(servers.bare), vault: await measure(servers.vault) });
  }
  const half = async (which: keyof Pair<unknown>) => {
    const full = median(measured.map((pair) => pair[which].perSecond));
    const results: number[] = [];
    // The pause at which all connections together reach half of the full rate.
    for (let round = 0; round < rounds; round += 1) {
      await turn();
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
