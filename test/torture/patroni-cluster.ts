/**
 * A PostgreSQL cluster for tests as operators run it: two servers with synchronous replication, Patroni beside each of
 * them, one etcd, and a proxy in front that leads to the primary. All of it on loopback, gone when the test ends.
 */
import { chmodSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findProgram } from '../harness/processes/missing-program.ts';
import { freePorts, startOnFreePorts } from '../harness/processes/port.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { memberPasswords, PatroniMember, type SyncMode } from './patroni-member.ts';
import { type PrimaryProxy, primaryProxy } from './primary-proxy.ts';

/** Longer than any failover takes, also on a busy machine. */
const patience = 90_000;
const interval = 50;

/**
 * Starts a cluster with both members in sync, and the role `vault` that owns the database `vault`. It ends with the
 * test. Rejects with the logs of the members if they do not get that far.
 */
export async function startCluster(t: Pick<TestContext, 'after'>, mode: SyncMode = 'lone'): Promise<Cluster> {
  const members: PatroniMember[] = [];
  // Registered first, since hooks run in order: the members write to the folder and to etcd until they end.
  t.after(() => stopAll(members));
  const etcd = await startEtcd(t);
  const dir = tempDir(t);
  // The members are another user if this one is root.
  chmodSync(dir, 0o755);
  const ports = await freePorts(4);
  for (const [index, name] of ['a', 'b'].entries()) {
    const [sql = 0, rest = 0] = ports.slice(2 * index);
    members.push(new PatroniMember(dir, name, { sql, rest, etcd }, mode));
  }
  const cluster = new Cluster(members, await primaryProxy(t, members));
  await cluster.heal();
  await cluster.createDatabase();
  return cluster;
}

async function startEtcd(t: Pick<TestContext, 'after'>): Promise<number> {
  const { ports } = await startOnFreePorts(t, 2, ([client = 0, peer = 0], dir) => {
    const [forClients, forPeers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
    return {
      // It ends with this process, also when that is killed.
      program: 'setpriv',
      args: [
        ...['--pdeathsig', 'KILL', findProgram('etcd') ?? 'etcd'],
        ...['--data-dir', `${dir}/etcd`, '--initial-cluster', `default=${forPeers}`],
        ...['--listen-client-urls', forClients, '--advertise-client-urls', forClients],
        ...['--listen-peer-urls', forPeers, '--initial-advertise-peer-urls', forPeers],
      ],
      isReady: async () => {
        const response = await fetch(`${forClients}/health`).catch(() => undefined);
        return response?.ok === true;
      },
    };
  });
  return ports[0] ?? 0;
}

async function stopAll(members: readonly PatroniMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.kill()));
}

type Row = Record<string, unknown>;

/**
 * A standby says so each five seconds if its primary does not have the segment after its last: pg_rewind removes some.
 */
const lacking =
  /could not receive data from WAL stream: ERROR: +requested WAL segment \w+ has already been removed/g;

export class Cluster {
  /** How many times a standby got a new copy of the primary. */
  copiedAgain = 0;
  /** The database `vault` at the primary, through the proxy. */
  readonly url: string;
  readonly #members: readonly PatroniMember[];
  readonly #proxy: PrimaryProxy;

  constructor(members: readonly PatroniMember[], proxy: PrimaryProxy) {
    this.#members = members;
    this.#proxy = proxy;
    this.url = `postgres://vault:${memberPasswords.vault}@127.0.0.1:${proxy.port}/vault`;
  }

  /** The URL of the database `vault` at this member, whatever its role, past the proxy. */
  directUrl(name: string): string {
    return this.#member(name).url('vault');
  }

  /** Where the servers keep their data. */
  get dataFolders(): string[] {
    return this.#members.map(({ data }) => data);
  }

  /** What this member's Patroni and server wrote. */
  log(name: string): string {
    return this.#member(name).log;
  }

  /**
   * Waits until there is a primary that the proxy leads to; resolves with its name. A paused one stays it until another
   * is promoted.
   */
  async primary(): Promise<string> {
    await this.#until('a primary', () => this.#proxy.target() !== undefined);
    return this.#proxy.target() ?? this.primary();
  }

  /**
   * Waits until a member other than this one is primary and writes; resolves with its name. Patroni names it primary a
   * moment before: until then it still receives what the former one commits, and clients get errors 25006 (read only).
   */
  async primaryOtherThan(former: string): Promise<string> {
    const recovery = 'select pg_is_in_recovery() as remains';
    await this.#until(`a primary other than ${former}`, async () => {
      const name = this.#proxy.target();
      if (name === undefined || name === former) return false;
      return (await this.#ask(this.#member(name), recovery))[0]?.remains === false;
    });
    return this.primary();
  }

  /** Swaps the roles in an orderly way, as for maintenance; waits for the new primary. Needs both members in sync. */
  async switchover(): Promise<string> {
    const leader = await this.primary();
    const candidate = this.#members.find(({ name }) => name !== leader)?.name;
    await this.#until('both members in sync', () => this.#inSync());
    const response = await fetch(`http://127.0.0.1:${this.#member(leader).ports.rest}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader, candidate }),
    });
    if (!response.ok) throw new Error(`switchover refused: ${response.status} ${await response.text()}`);
    return this.primaryOtherThan(leader);
  }

  /** Kills the primary and its Patroni; resolves with its name. It stays down until `heal`. */
  async crashPrimary(): Promise<string> {
    const name = await this.primary();
    await this.#member(name).kill();
    return name;
  }

  /**
   * Freezes the primary and its Patroni, for so many milliseconds or until `resume` or `heal`; resolves with its name.
   */
  async pausePrimary(ms?: number): Promise<string> {
    const name = await this.primary();
    this.#member(name).pause();
    if (ms === undefined) return name;
    await sleep(ms);
    this.resume();
    return name;
  }

  /** Lets frozen members go on. */
  resume(): void {
    for (const member of this.#members) if (member.isPaused) member.resume();
  }

  /** Starts and resumes what does not run; resolves when there is a primary with a synchronous standby. */
  async heal(): Promise<void> {
    this.resume();
    for (const member of this.#members) if (!member.isRunning) member.start();
    const before = new Map(this.#members.map((member) => [member, member.log.length]));
    await this.#until('both members in sync', async () => {
      if (await this.#inSync()) return true;
      for (const [member, length] of before) {
        if ([...member.log.slice(length).matchAll(lacking)].length < 3) continue;
        before.set(member, member.log.length);
        await this.#copyAgain(member);
      }
      return false;
    });
  }

  /** Gives a standby a new copy of the primary, as an operator does where Patroni keeps one that can never catch up. */
  async #copyAgain({ name, ports }: PatroniMember): Promise<void> {
    const body = JSON.stringify({ force: true });
    const response = await fetch(`http://127.0.0.1:${ports.rest}/reinitialize`, { method: 'POST', body });
    if (!response.ok)
      throw new Error(`${name} is not copied again: ${response.status} ${await response.text()}`);
    this.copiedAgain += 1;
  }

  /**
   * Waits until the standby shows all that was committed before this call; a commit waits only until it has been
   * received.
   */
  async caughtUp(): Promise<void> {
    const primary = this.#member(await this.primary());
    const [now] = await query(primary.url('postgres', 'postgres'), 'select pg_current_wal_lsn() as lsn');
    const replayed = `select 1 from pg_stat_replication where replay_lsn >= '${now?.lsn}'`;
    await this.#until('the standby', async () => (await this.#ask(primary, replayed)).length > 0);
  }

  /** Kills all members. The end of the test does so too. */
  async stop(): Promise<void> {
    await stopAll(this.#members);
  }

  /** Creates the role and the database of the vault. */
  async createDatabase(): Promise<void> {
    const primary = this.#member(await this.primary());
    const statements = [
      `create role vault login password '${memberPasswords.vault}'`,
      'create database vault owner vault',
    ];
    for (const statement of statements) await query(primary.url('postgres', 'postgres'), statement);
  }

  #member(name: string): PatroniMember {
    const member = this.#members.find((one) => one.name === name);
    if (member === undefined) throw new Error(`no member ${name}`);
    return member;
  }

  /** Whether the primary waits for the other member at each commit, and etcd knows that this one may be promoted. */
  async #inSync(): Promise<boolean> {
    const primary = this.#members.find(({ name }) => name === this.#proxy.target());
    if (primary === undefined) return false;
    const streaming = `select 1 from pg_stat_replication where state = 'streaming' and sync_state = 'sync'`;
    if ((await this.#ask(primary, streaming)).length === 0) return false;
    const signal = AbortSignal.timeout(interval * 20);
    try {
      const response = await fetch(`http://127.0.0.1:${primary.ports.rest}/cluster`, { signal });
      const { members } = (await response.json()) as { members: { role: string }[] };
      return members.some(({ role }) => role === 'sync_standby');
    } catch {
      // It has just ended, or does not answer.
      return false;
    }
  }

  /** The rows of a query to this member; none while it is starting or ending. */
  async #ask(member: PatroniMember, statement: string): Promise<Row[]> {
    try {
      return await query(member.url('postgres', 'postgres'), statement);
    } catch {
      // The caller asks again.
      return [];
    }
  }

  async #until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = Date.now() + patience;
    while (!(await condition())) {
      if (Date.now() > deadline) {
        const logs = this.#members.map(({ name, log }) => `--- ${name}\n${log.slice(-8000)}`);
        throw new Error(`waited ${patience} ms for ${what}\n${logs.join('\n')}`);
      }
      await sleep(interval);
    }
  }
}

async function query(url: string, statement: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2000, query_timeout: 5000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}
