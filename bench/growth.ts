/**
 * What becomes of the figures when there is much in the vault: processor time per request at several sizes, and what people
 * and the command line wait for at the largest.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { answerTo } from './answer.ts';
import { type Figure, figureTable, median, type Table } from './figure.ts';
import { type FilledVault, fillVault, type Size } from './filled-vault.ts';
import { type LoadRequest, load } from './load.ts';
import type { Pace } from './pace.ts';
import { type RequestKind, requestKinds, requestsOf } from './request-kinds.ts';
import { pinned, type ServerProcess, serverCore, startServer } from './server-process.ts';

const scratch = join(import.meta.dirname, '..', 'build');

const usual: Size = { certificates: 1000, keys: 1000, auditEvents: 0 };
const sizes: readonly Size[] = [
  { certificates: 100, keys: 10, auditEvents: 0 },
  usual,
  { certificates: 10_000, keys: 10_000, auditEvents: 1_000_000 },
  { certificates: 100_000, keys: 10_000, auditEvents: 1_000_000 },
];

const administrator = { name: 'bench', password: 'correct horse battery bench' };

/** Measures the executable at `program`. In a hurry the largest vault is a tenth of its size. */
export async function measureGrowth(program: string, pace: Pace): Promise<Table[]> {
  const measured = pace.isQuick
    ? sizes.slice(0, 3).map((size) => ({ ...size, auditEvents: size.auditEvents / 10 }))
    : sizes;
  const columns: { readonly size: Size; readonly each: readonly number[] }[] = [];
  let largest: Table | undefined;
  for (const size of measured) {
    const isLargest = size === measured.at(-1);
    const { each, figures } = await measureSize(program, size, pace, isLargest);
    columns.push({ size, each });
    largest = figureTable(`With ${nameOf(size)}`, figures);
  }
  const kinds = requestKinds.filter(({ options }) => options === undefined);
  const rows = [...kinds.map(({ name }) => name), 'full chain, 200, no two the same'].map((name, index) => [
    name,
    ...columns.map(({ each }) => each[index] ?? Number.NaN),
  ]);
  const head = ['processor time per request, µs', ...columns.map(({ size }) => nameOf(size))];
  return [{ title: 'Growth', head, rows }, ...(largest === undefined ? [] : [largest])];
}

function nameOf({ certificates, keys, auditEvents }: Size): string {
  const events = auditEvents === 0 ? '' : `, ${auditEvents.toLocaleString('en')} audit events`;
  return `${certificates.toLocaleString('en')} certificates, ${keys.toLocaleString('en')} keys${events}`;
}

async function measureSize(
  program: string,
  size: Size,
  pace: Pace,
  isLargest: boolean,
): Promise<{ each: number[]; figures: Figure[] }> {
  mkdirSync(scratch, { recursive: true });
  const directory = mkdtempSync(join(scratch, 'bench-'));
  try {
    const vault = await fillVault(join(directory, 'data'), size);
    const data = ['--data-dir', vault.dataDir];
    const { name, password } = administrator;
    cli([program, 'admin', 'create', '--name', name, '--password-stdin', ...data], password);
    const server = await startServer([program, 'serve', ...data, '--listen', '127.0.0.1:0'], {
      ...{ core: serverCore, log: join(directory, 'log') },
    });
    try {
      const each: number[] = [];
      for (const kind of requestKinds.filter(({ options }) => options === undefined)) {
        // As many clients as in the other benchmarks, whatever else there is.
        each.push(await costOf(kind, server, requestsOf(kind, vault, usual.keys), pace));
      }
      const chain = requestKinds[1] as RequestKind;
      const all = requestsOf(chain, vault, Math.min(20_000, size.certificates));
      each.push(await costOf(chain, server, all, pace));
      return { each, figures: isLargest ? await waits(program, server, vault, pace) : [] };
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Processor time of the server for each request, in µs. */
async function costOf(
  kind: RequestKind,
  server: ServerProcess,
  requests: readonly LoadRequest[],
  { seconds, rounds }: Pace,
): Promise<number> {
  const { status } = await answerTo(server.url, requests[0] as LoadRequest);
  if (status !== kind.status) throw new Error(`${kind.name}: the vault answers ${status}`);
  const values: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const before = server.processorTime();
    const result = await load({ url: server.url, requests, seconds });
    // The first round is not counted: the code is still being compiled.
    if (round > 0) values.push(((server.processorTime() - before) / result.requests) * 1000);
  }
  return median(values);
}

/** What people and the command line wait for. */
async function waits(
  program: string,
  server: ServerProcess,
  { dataDir }: FilledVault,
  { rounds }: Pace,
): Promise<Figure[]> {
  const body = JSON.stringify(administrator);
  const origin = { Origin: server.url, 'Content-Type': 'application/json' };
  const signIn = async () => {
    const response = await fetch(`${server.url}/api/v1/session`, { method: 'POST', headers: origin, body });
    if (response.status !== 201) throw new Error(`sign-in answers ${response.status}`);
    return response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? '';
  };
  const cookie = await signIn();
  const agent = new Agent({ keepAlive: true });
  const page = (path: string) => async () => {
    const asked = get(`${server.url}/api/v1/${path}`, { agent, headers: { Cookie: cookie } });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    // To the last byte; what a client makes of them is its own affair.
    await once(response.resume(), 'end');
    if (response.statusCode !== 200) throw new Error(`${path} answers ${response.statusCode}`);
  };
  const command =
    (...args: string[]) =>
    async () =>
      void cli([program, ...args, '--data-dir', dataDir]);
  const time = async (work: () => Promise<unknown>, count: number) => {
    const times: number[] = [];
    for (let round = 0; round < count; round += 1) {
      const started = performance.now();
      await work();
      times.push(performance.now() - started);
    }
    return median(times);
  };
  const scope = ['--scope', 'certificates:read', '--certificate', 'www7.example.com'];
  const after = encodeURIComponent('www5');
  const pages: [name: string, work: () => Promise<unknown>][] = [
    ['a page of 100 certificates', page(`certificates?limit=100&after=${after}`)],
    ['a page of 1,000 certificates', page(`certificates?after=${after}`)],
    ['100 audit events, the newest', page('audit-events?limit=100')],
    ['100 audit events of a key', page('audit-events?limit=100&actor=api-key:7:k6')],
    [
      '100 audit events of a certificate',
      page('audit-events?limit=100&resource=certificate:www7.example.com'),
    ],
    ['the audit events of nobody', page('audit-events?limit=100&actor=nobody')],
  ];
  const others: [name: string, goal: number | undefined, work: () => Promise<unknown>][] = [
    ['vault api-key create', 300, command('api-key', 'create', '--name', 'cold', ...scope)],
    ['vault api-key list', 300, command('api-key', 'list')],
  ];
  const figures: Figure[] = [
    { name: 'vault serve until it listens', value: server.listening, unit: 'ms', goal: 1000 },
    { name: 'memory after the load', value: server.memory().resident, unit: 'MB', goal: 200 },
    { name: 'without the pages of its file', value: server.memory().own, unit: 'MB' },
  ];
  // The first of many are answered by code that is still being compiled; people do not notice, but it is no figure.
  for (const [name, work] of pages) {
    await time(work, 10);
    figures.push({ name, value: await time(work, 5 * rounds), unit: 'ms', goal: 20 });
  }
  const signingIn = await time(signIn, 2 * rounds + 1);
  const apart = signingIn - hashing(2 * rounds + 1);
  figures.push(
    { name: 'signing in', value: signingIn, unit: 'ms' },
    { name: 'apart from the hashing of the password', value: apart, unit: 'ms', goal: 20 },
  );
  for (const [name, goal, work] of others) {
    const value = await time(work, 2 * rounds + 1);
    figures.push({ name, value, unit: 'ms', ...(goal !== undefined && { goal }) });
  }
  agent.destroy();
  return figures;
}

/** Milliseconds that hashing a password takes, by itself on the server's core. */
function hashing(count: number): number {
  const command = [process.execPath, join(import.meta.dirname, 'password-time.ts'), String(count)];
  const [program = '', ...args] = pinned(serverCore, command);
  const { stdout } = spawnSync(program, args, { encoding: 'utf8' });
  return median(JSON.parse(stdout) as number[]);
}

function cli([program = '', ...args]: readonly string[], input = ''): void {
  const { status, stderr } = spawnSync(program, args, { input, encoding: 'utf8', maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`vault ${args.join(' ')} failed: ${stderr}`);
}
