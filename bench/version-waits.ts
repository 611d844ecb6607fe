/**
 * Clients that wait for a new version with `?wait=`: the memory that each costs the server, and the time until the last
 * of them has a version that replaces the current one in an emergency.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Figure, figureTable, median, type Table } from './figure.ts';
import { type FilledVault, fillVault } from './filled-vault.ts';
import type { Pace } from './pace.ts';
import { inScratch } from './scratch.ts';
import {
  leaveServerCore,
  type ServerProcess,
  serveCommand,
  serverCore,
  startServer,
} from './server-process.ts';
import { type Replaced, WaitingClient } from './waiting-client.ts';

/** A caller can have half of the places. */
const keys = 4;

const metricsToken = 'token-of-the-benchmark';

/** Clients that the replacement must reach. */
const replaced = 1000;

/** Measures the executable at `program`. */
export async function measureVersionWaits(program: string, { isQuick, turn }: Pace): Promise<Table[]> {
  return inScratch(async (directory) => {
    const vault = await fillVault(join(directory, 'data'), { certificates: 1, keys, auditEvents: 0 });
    const tokenFile = join(directory, 'token');
    writeFileSync(tokenFile, metricsToken, { mode: 0o600 });
    const command = [...serveCommand(program, vault.dataDir), '--metrics-token-file', tokenFile];
    const server = await startServer(command, { cores: serverCore, log: join(directory, 'log') });
    const unpin = leaveServerCore();
    try {
      const memory = await memoryPerClient(server, vault, isQuick ? 4000 : 10_000);
      const times: ReplacementTimes[] = [];
      for (let round = 0; round < (isQuick ? 1 : 5); round += 1) {
        await turn();
        times.push(await timesOf(program, server, vault));
      }
      const figure = (name: string, of: keyof ReplacementTimes, goal?: number): Figure => ({
        ...{ name, value: median(times.map((each) => each[of])), unit: 'ms' },
        ...(goal !== undefined && { goal }),
      });
      return [
        figureTable('Clients that wait for a new version', [
          { name: 'memory of a waiting client', value: memory, unit: 'kB', goal: 10 },
          figure('vault certificate revoke', 'command'),
          figure(`until the first of ${replaced} clients has it`, 'first'),
          figure('until the last has it', 'last'),
          figure('until the last has its private key, after a random pause', 'installed', 10_000),
        ]),
      ];
    } finally {
      unpin();
      await server.stop();
    }
  });
}

type ReplacementTimes = Readonly<Record<'command' | 'first' | 'last' | 'installed', number>>;

/** Milliseconds from the start of an emergency replacement: of the command, and until clients have the new version. */
async function timesOf(
  program: string,
  server: ServerProcess,
  vault: FilledVault,
): Promise<ReplacementTimes> {
  const [name = ''] = vault.names;
  const probe = await WaitingClient.open(server.url, vault.keys[0] ?? '', name);
  const etag = await probe.tag();
  probe.close();
  const waiting: Promise<Replaced>[] = [];
  const clients = await openClients(server, vault, replaced, (client) => waiting.push(client.replace(etag)));
  try {
    const started = performance.now();
    const command = ['certificate', 'revoke', '--name', name, '--reason', 'keyCompromise'];
    const revoking = spawn(program, [...command, '--data-dir', vault.dataDir], { stdio: 'ignore' });
    const [status] = await once(revoking, 'exit');
    if (status !== 0) throw new Error(`vault certificate revoke failed with status ${status}`);
    const ended = performance.now();
    const all = await Promise.all(waiting);
    const chains = all.map(({ chain }) => chain - started);
    return {
      command: ended - started,
      first: Math.min(...chains),
      last: Math.max(...chains),
      installed: Math.max(...all.map(({ key }) => key - started)),
    };
  } finally {
    await leave(server, clients);
  }
}

/** Kilobytes of the server for each of `count` clients that wait, with their connections. */
async function memoryPerClient(server: ServerProcess, vault: FilledVault, count: number): Promise<number> {
  // The first clients make the heap grow to what any load needs.
  await leave(server, await waitTogether(server, vault, count / 4));
  const before = await settledMemory(server);
  const clients = await waitTogether(server, vault, count);
  const after = await settledMemory(server);
  await leave(server, clients);
  return ((after - before) * 1000) / count;
}

function waitTogether(server: ServerProcess, vault: FilledVault, count: number): Promise<WaitingClient[]> {
  // They are closed while they wait.
  return openClients(server, vault, count, (client) => void client.wait(vault.etags.fullchain, 300));
}

async function leave(server: ServerProcess, clients: readonly WaitingClient[]): Promise<void> {
  for (const client of clients) client.close();
  await untilWaiting(server, 0);
}

/** Connects clients and lets them wait, in groups: idle connections beyond the limit would be closed. */
async function openClients(
  server: ServerProcess,
  { keys: all, names: [name = ''] }: FilledVault,
  count: number,
  begin: (client: WaitingClient) => void,
): Promise<WaitingClient[]> {
  const clients: WaitingClient[] = [];
  while (clients.length < count) {
    const group = Array.from({ length: Math.min(500, count - clients.length) }, (_, index) =>
      WaitingClient.open(server.url, all[index % all.length] ?? '', name),
    );
    for (const client of await Promise.all(group)) {
      clients.push(client);
      begin(client);
    }
    await untilWaiting(server, clients.length);
  }
  return clients;
}

/** Resolves when so many requests wait at the server. */
async function untilWaiting({ url }: ServerProcess, count: number): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/metrics`, { headers: { Authorization: `Bearer ${metricsToken}` } });
    const waiting = /^certificate_vault_waiting_requests (\d+)$/m.exec(await response.text())?.[1];
    if (Number(waiting) === count) return;
    await delay(100);
  }
}

/** Megabytes of its own, the least of ten seconds: the rest is garbage that has not been collected yet. */
async function settledMemory(server: ServerProcess): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let second = 0; second < 10; second += 1) {
    await delay(1000);
    const { own } = server.memory();
    least = Math.min(least, own);
  }
  return least;
}
