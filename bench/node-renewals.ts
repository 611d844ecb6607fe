/**
 * Renewals by the private CA, which needs no other machine: how fast each vault does many of them, and what they cost.
 * The vaults take turns.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';
import { databaseIn } from '../src/domain/instance/vault-database.ts';
import type { Cell, Table } from './figure.ts';
import type { FilledVault } from './filled-vault.ts';
import type { MeasuredDatabase } from './measured-database.ts';
import type { Deployment } from './node-deployments.ts';
import { workSince } from './nodes-load.ts';

const head = [
  ...[
    'vault',
    'renewals',
    '/s',
    'node CPU ms each',
    'database CPU ms each',
    'batches each',
    'WAL bytes each',
  ],
];

type Order = {
  readonly program: string;
  readonly vault: FilledVault;
  readonly server: MeasuredDatabase;
  /** The certificates to renew are those with this text in their name. */
  readonly search: string;
};

/** Renews them once in each vault. */
export async function measureRenewals(order: Order, deployments: readonly Deployment[]): Promise<Table> {
  const rows: Cell[][] = [];
  for (const deployment of deployments) rows.push(await renew(order, deployment));
  return { title: 'Renewals by the private CA', head, rows };
}

async function renew({ program, vault, server, search }: Order, deployment: Deployment): Promise<Cell[]> {
  const { name, nodes, dataDir, url } = deployment;
  const renewals = vault.names.filter((each) => each.includes(search)).length;
  const place = ['--data-dir', dataDir, ...(url === undefined ? [] : ['--database', url])];
  const nodeTime = () => nodes.reduce((sum, node) => sum + node.processorTime(), 0);
  const counter = await versionCounter(deployment);
  try {
    const wanted = (await counter.count()) + renewals;
    const before = { time: nodeTime(), work: await server.work() };
    const filter = ['--all', '--search', search, '--yes'];
    execFileSync(program, ['certificate', 'renew', ...filter, ...place], { stdio: 'pipe' });
    while ((await counter.count()) < wanted) await delay(50);
    const work = workSince(before.work, await server.work());
    const onServer = (value: number) => (url === undefined ? '' : value / renewals);
    return [
      ...[name, String(renewals), renewals / work.seconds, (nodeTime() - before.time) / renewals],
      ...[onServer(work.processorMs), onServer(work.writes), onServer(work.logged)],
    ];
  } finally {
    await counter.close();
  }
}

const countVersions = 'select cast(count(*) as integer) as count from certificate_versions';

type Counter = { readonly count: () => Promise<number>; readonly close: () => Promise<void> };

/**
 * Counts the versions of all certificates over one connection, because to open others would take the database's time.
 */
async function versionCounter({ dataDir, url }: Deployment): Promise<Counter> {
  if (url === undefined) {
    const file = new BetterSqlite3(databaseIn(dataDir).path, { readonly: true });
    const statement = file.prepare(countVersions).pluck();
    return { count: async () => Number(statement.get()), close: async () => void file.close() };
  }
  const client = new pg.Client(url);
  await client.connect();
  const count = async () => (await client.query<{ count: number }>(countVersions)).rows[0]?.count ?? 0;
  return { count, close: () => client.end() };
}
