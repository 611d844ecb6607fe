/** What happens to the nodes and their database in a round, drawn by chance, and how all of it is mended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Balancer } from './balancer.ts';
import type { Chance } from './chamber.ts';
import { withRows } from './server-truths.ts';
import type { TormentedDatabase } from './tormented-database.ts';
import type { TormentedNode } from './tormented-nodes.ts';
import type { TroubledTimes } from './troubled-times.ts';

/** How long all may take to be ready again, in milliseconds. */
const patience = 90_000;

/** How long a node may take to start while the database may be down, in milliseconds. */
const startPatience = 45_000;

export type Stage = {
  readonly nodes: readonly TormentedNode[];
  readonly database: TormentedDatabase;
  readonly balancer: Pick<Balancer, 'ready'>;
  readonly troubles: TroubledTimes;
  /** The longest pause of a node, in milliseconds. */
  readonly maxPause: number;
  /** The share of rounds in which something happens to the database. */
  readonly databaseShare: number;
};

/** How often each thing has happened. */
export type Happened = Map<string, number>;

/**
 * Lets some things happen, several at the same time; resolves with their names when they are over and all is whole
 * again.
 */
export async function torment(stage: Stage, chance: Chance, happened: Happened): Promise<readonly string[]> {
  const { nodes, database, troubles } = stage;
  const names: string[] = [];
  const events: Promise<unknown>[] = [];
  const begin = (name: string, work: (own: Chance) => Promise<unknown>) => {
    names.push(name);
    happened.set(name, (happened.get(name) ?? 0) + 1);
    const own = chance.child(name);
    events.push(delay(own.whole(0, 1500)).then(() => work(own)));
  };
  const leader = chance.happens(0.4) ? await leadingNode(stage) : undefined;
  const first = leader ?? chance.one(nodes);
  const second = chance.one(nodes.filter((node) => node !== first));
  troubles.begin();
  begin(...nodeEvent(first, chance, stage.maxPause));
  if (chance.happens(0.4)) begin(...nodeEvent(second, chance.child('second'), stage.maxPause));
  if (chance.happens(stage.databaseShare)) {
    const { name, happen } = chance.one(database.events);
    begin(name, happen);
  }
  await Promise.all(events);
  await heal(stage);
  return names;
}

function nodeEvent(
  node: TormentedNode,
  chance: Chance,
  longest: number,
): [name: string, work: (own: Chance) => Promise<unknown>] {
  if (chance.happens(0.5)) {
    const work = async (own: Chance) => {
      await node.kill();
      await delay(own.whole(0, 2000));
      // A database that does not recover by itself lets no node start; `heal` starts it again then.
      await node.start(startPatience).catch(() => undefined);
    };
    return [`${node.name} killed`, work];
  }
  // Now and then longer than the lease of the leading node, 15 s.
  const most = chance.happens(0.35) ? longest : Math.min(longest, 8000);
  const work = async (own: Chance) => {
    node.pause();
    await delay(own.whole(Math.min(1000, most), most));
    node.resume();
  };
  return [`${node.name} paused`, work];
}

/** Ends all troubles: everything runs, is ready, and gets requests from the balancer. */
export async function heal({ nodes, database, balancer, troubles }: Stage): Promise<void> {
  await database.heal();
  await Promise.all(nodes.map((node) => node.start()));
  await Promise.all(nodes.map((node) => node.ready()));
  const deadline = performance.now() + patience;
  while (balancer.ready().length < nodes.length) {
    if (performance.now() > deadline) throw new Error(`only ${balancer.ready().join(', ')} are ready`);
    await delay(20);
  }
  troubles.end();
}

/** The node that runs the jobs, if any does. */
async function leadingNode({ nodes, database }: Stage): Promise<TormentedNode | undefined> {
  const sql = 'select n.settings from job_leases l join nodes n on n.id = l.node_id';
  const [row] = await withRows(database.url, (rows) => rows(sql));
  const settings = String(row?.settings ?? '');
  return nodes.find(({ origin }) => settings.includes(`"port":${new URL(origin).port}`));
}
