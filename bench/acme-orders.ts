/**
 * How many orders per second an ACME server takes, from the new order to the certificate and with all requests in
 * between: the vault, the vault with many accounts and past orders, and step-ca, each on one core in turns, with the
 * same client on the other.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { AcmeLoadClient, type AcmeServer, wishes } from './acme-client.ts';
import { type History, startAcmeVault } from './acme-vault.ts';
import { median, type Table } from './figure.ts';
import type { Pace } from './pace.ts';
import { inScratch } from './scratch.ts';
import { leaveServerCore, type RunningProcess } from './server-process.ts';
import { startStepCa, stepCa } from './step-ca.ts';

/** At a time, each with an account, a key and a connection of its own. */
const clients = 16;

/** What a vault with a past has. */
const past: History = { accounts: 100_000, orders: 1_000_000 };

type Contestant = {
  readonly name: string;
  readonly server: RunningProcess & { readonly acme: AcmeServer };
  readonly clients: readonly AcmeLoadClient[];
  readonly rounds: Round[];
};

type Round = {
  readonly perSecond: number;
  readonly requests: number;
  readonly processorMs: number;
  readonly clientMs: number;
};

/** Measures the executable at `program`, and step-ca if it is installed. */
export async function measureAcmeOrders(program: string, pace: Pace): Promise<Table[]> {
  const returnToAllCores = leaveServerCore();
  try {
    return await inScratch((directory) => measureIn(directory, program, pace));
  } finally {
    returnToAllCores();
  }
}

async function measureIn(directory: string, program: string, pace: Pace): Promise<Table[]> {
  const running: Contestant[] = [];
  const start = async (name: string, begin: (place: string) => Promise<Contestant['server']>) => {
    const place = join(directory, String(running.length));
    mkdirSync(place);
    const server = await begin(place);
    running.push({
      ...{ name, server, rounds: [] },
      clients: Array.from({ length: clients }, () => new AcmeLoadClient(server.acme)),
    });
  };
  const size = pace.isQuick ? { accounts: past.accounts / 10, orders: past.orders / 10 } : past;
  try {
    await start('vault', (place) => startAcmeVault(program, place));
    await start(
      `vault with ${number(size.accounts)} accounts and ${number(size.orders)} past orders`,
      (place) => startAcmeVault(program, place, size),
    );
    if (stepCa === undefined) console.log('\nstep-ca is left out: it is not installed');
    else await start('step-ca, http-01', (place) => startStepCa(stepCa as string, place));
    await measure(running, pace);
    return [tableOf(running)];
  } finally {
    for (const { server, clients } of running) {
      for (const client of clients) client.close();
      await server.stop();
    }
  }
}

async function measure(running: readonly Contestant[], { seconds, rounds, turn }: Pace): Promise<void> {
  for (const { clients } of running) await Promise.all(clients.map((client) => client.register()));
  // The first round is for compilers and caches.
  for (let round = 0; round <= rounds; round += 1) {
    for (const one of running) {
      const result = await load(one, seconds);
      if (round > 0) one.rounds.push(result);
    }
    await turn();
  }
}

const wish = wishes();
let names = 0;

/** Orders for this time. Each order is for another name; the CSRs are made in advance. */
async function load({ clients, server }: Contestant, seconds: number): Promise<Round> {
  const waiting = Array.from({ length: seconds * 600 }, () => {
    names += 1;
    return wish(`host-${names}.example.com`);
  });
  const requests = () => clients.reduce((sum, client) => sum + client.requests, 0);
  const before = { requests: requests(), server: server.processorTime(), client: process.cpuUsage() };
  const started = performance.now();
  const end = started + seconds * 1000;
  let done = 0;
  await Promise.all(
    clients.map(async (client) => {
      for (let next = waiting.pop(); next !== undefined && performance.now() < end; next = waiting.pop()) {
        const certificate = await client.order(next);
        if (!certificate.startsWith('-----BEGIN CERTIFICATE-----')) throw new Error('no certificate came');
        done += 1;
      }
    }),
  );
  const ms = performance.now() - started;
  const { user, system } = process.cpuUsage(before.client);
  return {
    perSecond: (done * 1000) / ms,
    requests: (requests() - before.requests) / done,
    processorMs: (server.processorTime() - before.server) / done,
    clientMs: (user + system) / 1000 / done,
  };
}

function tableOf(running: readonly Contestant[]): Table {
  const middle = (one: Contestant, figure: keyof Round) => median(one.rounds.map((round) => round[figure]));
  const [first] = running;
  const base = first === undefined ? Number.NaN : middle(first, 'perSecond');
  return {
    title: 'Orders of ACME clients to the certificate, on one core',
    head: [
      'server',
      'orders/s',
      'of the vault',
      'requests per order',
      'processor ms per order',
      'client ms per order',
    ],
    rows: running.map((one) => [
      one.name,
      middle(one, 'perSecond'),
      middle(one, 'perSecond') / base,
      middle(one, 'requests'),
      middle(one, 'processorMs'),
      middle(one, 'clientMs'),
    ]),
  };
}

function number(value: number): string {
  return value.toLocaleString('en').replaceAll(',', ' ');
}
