/**
 * The database under the nodes, and what happens to it: a Patroni cluster with synchronous replication that fails over,
 * or one server that crashes and starts again.
 */
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startPostgres } from '../harness/postgres/postgres.ts';
import type { Chance } from './chamber.ts';
import { type Cluster, startCluster } from './patroni-cluster.ts';

/** One thing that happens to the database; resolves when it is over, apart from what `heal` mends. */
export type DatabaseEvent = {
  readonly name: string;
  readonly happen: (chance: Chance) => Promise<unknown>;
};

export type TormentedDatabase = {
  /** For the checks: leads to the server that takes writes. */
  readonly url: string;
  /** For the nodes. */
  readonly nodesUrl: string;
  readonly events: readonly DatabaseEvent[];
  /** Resolves when all of it runs and is in sync. */
  readonly heal: () => Promise<void>;
  /** How often it did not heal by itself, so that its primary was restarted. */
  readonly repairs: () => number;
  /** What its servers wrote. */
  readonly log: () => string;
};

type Ending = Pick<TestContext, 'after'>;

/** One server that writes as durably as in operation. */
export async function tormentedServer(t: Ending): Promise<TormentedDatabase> {
  const server = await startPostgres(t, { settings: { fsync: 'on', full_page_writes: 'on' } });
  const again = async (end: () => Promise<void>, chance: Chance) => {
    await end();
    await delay(chance.whole(0, 1500));
    await server.start();
  };
  const url = await server.createDatabase('vault');
  return {
    ...{ url, nodesUrl: url },
    events: [
      { name: 'database killed', happen: (chance) => again(() => server.kill(), chance) },
      {
        name: 'database stopped without a checkpoint',
        happen: (chance) => again(() => server.stop('immediate'), chance),
      },
      {
        name: 'database paused',
        happen: async (chance) => {
          server.pause();
          await delay(chance.whole(500, 3000));
          server.resume();
        },
      },
    ],
    heal: async () => undefined,
    repairs: () => 0,
    log: () => server.log,
  };
}

/** Two servers under Patroni, behind a proxy that leads to the primary. */
export async function tormentedCluster(t: Ending): Promise<TormentedDatabase> {
  return tormented(await startCluster(t, 'strict'));
}

/** The same without the proxy: the nodes know both servers. Nothing cuts their connections to a former primary. */
export async function tormentedServers(t: Ending): Promise<TormentedDatabase> {
  const cluster = await startCluster(t, 'strict');
  const [one, other] = ['a', 'b'].map((name) => new URL(cluster.directUrl(name)));
  const nodesUrl = `${one?.href.replace(one.host, `${one.host},${other?.host}`)}`;
  return { ...tormented(cluster), nodesUrl };
}

function tormented(cluster: Cluster): TormentedDatabase {
  let repairs = 0;
  return {
    url: cluster.url,
    nodesUrl: cluster.url,
    events: [
      {
        name: 'primary killed',
        happen: async (chance) => {
          const former = await cluster.crashPrimary();
          // Now and then it is back before its lease has ended, and stays the primary.
          if (chance.happens(0.3)) await delay(chance.whole(0, 3000));
          else await cluster.primaryOtherThan(former);
        },
      },
      { name: 'switchover', happen: () => cluster.switchover() },
      { name: 'primary paused', happen: (chance) => cluster.pausePrimary(chance.whole(500, 6000)) },
      {
        name: 'primary paused until another takes over',
        happen: async (chance) => {
          const former = await cluster.pausePrimary();
          await cluster.primaryOtherThan(former);
          await delay(chance.whole(0, 2000));
          cluster.resume();
        },
      },
    ],
    heal: async () => {
      try {
        await cluster.heal();
      } catch {
        // After a pause, Patroni may hold an old state of the standby in etcd for good ("updated by someone else").
        repairs += 1;
        await cluster.crashPrimary();
        await cluster.heal();
      }
    },
    repairs: () => repairs + cluster.copiedAgain,
    log: () => ['a', 'b'].map((name) => `--- ${name}\n${cluster.log(name)}`).join('\n'),
  };
}
