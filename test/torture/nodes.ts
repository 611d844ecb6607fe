/**
 * Several nodes on one database, tormented: nodes are killed and paused, the database crashes or fails over, under
 * load. After each round all is mended, and every response that any node gave must still hold at all of them.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeChain } from '../harness/ca/private-chain.ts';
import { scriptedAcme } from '../harness/ca/scripted-acme.ts';
import { AuditTruth } from './audit-truth.ts';
import { startBalancer } from './balancer.ts';
import type { Finding, Order } from './chamber.ts';
import { administrator } from './crowd.ts';
import { NodeAgreement } from './node-agreement.ts';
import { NodeAsker } from './node-asker.ts';
import { commandNames, NodeCommands } from './node-commands.ts';
import { crowdKinds, NodeCrowd } from './node-crowd.ts';
import { NodeDownloads } from './node-downloads.ts';
import { type Happened, torment } from './node-events.ts';
import { NodeOrders, ordered } from './node-orders.ts';
import { NodeShifts } from './node-shifts.ts';
import { needsPatroni } from './patroni-member.ts';
import { runCommand } from './running-vault.ts';
import { ServerTruths, withRows } from './server-truths.ts';
import {
  type TormentedDatabase,
  tormentedCluster,
  tormentedServer,
  tormentedServers,
} from './tormented-database.ts';
import { faketimeLibrary, layNodes, shareKey, type TormentedNode } from './tormented-nodes.ts';
import { TroubledTimes } from './troubled-times.ts';

export type NodesOptions = {
  readonly rounds: number;
  /** For each node the seconds by which its clock is ahead. */
  readonly skews: readonly number[];
  /** The number of concurrent downloads. */
  readonly clients: number;
  readonly maxPause: number;
  /** How long the load goes on after each round, while nothing is broken, in milliseconds. */
  readonly calm: number;
  /** The share of commands that are killed. */
  readonly killedCommands: number;
  /** The share of rounds in which something happens to the database. */
  readonly databaseShare: number;
  /** Whether the audit log is verified after each round, or after the last one. */
  readonly verify: 'each' | 'last';
  readonly database: (t: Ending) => Promise<TormentedDatabase>;
};

/** Where what was started is ended. */
type Ending = { readonly after: (end: () => unknown) => void };

/**
 * The full form: `--rounds N` (50), on a Patroni cluster where its programs are installed, with clocks that differ.
 * With `--proxy 0` the nodes know both servers instead of a proxy that leads to the primary.
 */
export async function tortureNodes(order: Order): Promise<readonly Finding[]> {
  const { skip: withoutCluster } = needsPatroni();
  if (withoutCluster !== undefined) order.say(`one server instead of a cluster: ${withoutCluster}`);
  if (faketimeLibrary() === undefined) order.say('the clocks of all nodes agree: faketime is not installed');
  const cluster = order.amount('proxy') === 0 ? tormentedServers : tormentedCluster;
  return tormentNodes(order, {
    rounds: order.amount('rounds') ?? 50,
    skews: [0, 60, -60],
    clients: order.amount('clients') ?? 6,
    maxPause: 25_000,
    ...{ calm: 1500, databaseShare: 0.6, killedCommands: 0.1, verify: 'each' },
    database: withoutCluster === undefined ? cluster : tormentedServer,
  });
}

/** Torments and checks repeatedly. Throws with all broken promises. */
export async function tormentNodes(order: Order, options: NodesOptions): Promise<readonly Finding[]> {
  const ends: (() => unknown)[] = [];
  try {
    return await run(order, options, { after: (end) => ends.unshift(end) });
  } finally {
    for (const end of ends) await end();
  }
}

async function run(order: Order, options: NodesOptions, t: Ending): Promise<readonly Finding[]> {
  const { folder, program, chance, say } = order;
  const database = await options.database(t);
  const { skews } = options;
  const nodes = await layNodes({ program, folder, database: database.nodesUrl, skews });
  t.after(() => Promise.all(nodes.map((node) => node.kill())));
  await createVault(nodes);
  const orders = new NodeOrders(await scriptedAcme(t), database.url);
  await orders.addIssuer(firstOf(nodes).place);
  await Promise.all(nodes.map((node) => node.start()));
  await Promise.all(nodes.map((node) => node.ready()));
  const origins = nodes.map(({ origin }) => origin);
  const balancer = await startBalancer(t, origins, { silence: 2000 });
  const troubles = new TroubledTimes();
  const asker = new NodeAsker(balancer.url, origins, troubles);
  const ground = await layGround(asker);
  const crowd = new NodeCrowd({ asker, clients: options.clients, ...ground });
  const places = nodes.map(({ place }) => place);
  const commands = new NodeCommands({
    ...{ asker, places, folder, database: database.nodesUrl, killed: options.killedCommands },
    ...ground,
  });
  const users = { ...crowd.users, ...commands.users };
  const failed = ({ stack = '' }: Error) => void asker.broken.push(stack);
  const shifts = new NodeShifts(users, chance.child('crowd'), failed);
  const agreement = new NodeAgreement(nodes, database.url);
  const truths = new ServerTruths(database.url);
  const auditTruth = new AuditTruth(join(folder, 'checkpoints'));
  const { maxPause, databaseShare } = options;
  const stage = { nodes, database, balancer, troubles, maxPause, databaseShare };
  const happened: Happened = new Map();
  t.after(async () => {
    await shifts.end();
    asker.end();
  });
  for (let round = 1; round <= options.rounds; round++) {
    const isLast = round === options.rounds;
    shifts.resume();
    const names = await torment(stage, chance.child(`round ${round}`), happened);
    await delay(options.calm);
    if (isLast) await eachKind(asker, commands);
    await shifts.pause();
    await asker.answered();
    if (isLast) await noOpenRenewals(database.url);
    await look(`round ${round} (${names.join(', ')})`, isLast);
    say(`round ${round}: ${names.join(', ')}; ${asker.known().answered} answers, all true`);
  }
  const { doubts } = truths;
  return [
    { name: 'nodes', value: nodes.length },
    { name: 'rounds', value: options.rounds },
    ...[...happened].sort().map(([name, value]) => ({ name, value })),
    { name: 'restarts and copies of a server that Patroni did not recover', value: database.repairs() },
    { name: 'answers', value: asker.known().answered },
    ...[...asker.known().answers].sort().map(([kind, value]) => ({ name: `  ${kind}`, value })),
    { name: 'polls that nothing had changed for', value: asker.known().unchanged.length },
    { name: 'commands killed', value: commands.killed },
    ...[...commands.succeeded].map(([name, value]) => ({ name: `  vault ${name}`, value })),
    { name: 'requests that failed while something was broken', value: troubles.excused },
    { name: 'requests without a response, found done', value: doubts.done },
    { name: 'requests without a response, found not done', value: doubts.undone },
    { name: 'certificates that the CA issued', value: orders.issued },
    { name: 'orders whose URL was lost with a node', value: orders.lost },
    {
      name: 'comparisons',
      value: asker.compared + truths.compared + agreement.compared + auditTruth.compared + orders.compared,
    },
    { name: 'broken promises', value: 0 },
  ];

  async function look(when: string, everything: boolean): Promise<void> {
    const { place } = firstOf(nodes);
    const isVerified = everything || options.verify === 'each';
    // A checkpoint of the last round would be compared with the same log.
    if (isVerified && !everything) {
      const { code, stdout } = await runCommand(place, ['audit', 'checkpoint']);
      if (code === 0) asker.done({ kind: 'checkpoint' }, { checkpoint: stdout.trim() });
      else asker.expect(false, 'the audit log gave no checkpoint');
    }
    const facts = asker.known();
    const broken = [
      ...troubles.broken,
      ...asker.broken,
      ...(await truths.broken(facts)),
      ...(await agreement.broken(facts, { everything })),
      ...(await orders.broken({ everything })),
      ...(isVerified ? await auditTruth.ofLog(place, facts, { everything }) : []),
    ];
    if (broken.length === 0) return;
    throw new Error(
      `broken promises, ${when}:\n${broken.slice(0, 30).join('\n')}\n${logsOf(nodes, database, folder)}`,
    );
  }
}

/** Makes the vault with its administrator, and gives all nodes its master key. */
async function createVault(nodes: readonly TormentedNode[]): Promise<void> {
  const args = ['admin', 'create', '--name', administrator.name, '--password-stdin'];
  const { code, stderr } = await runCommand(firstOf(nodes).place, args, { input: administrator.password });
  if (code !== 0) throw new Error(`vault ${args.join(' ')}: ${stderr}`);
  shareKey(nodes);
}

/** Certificates to download, and a key for all of them. */
async function layGround(asker: NodeAsker) {
  const signIn = { ...asker.form('POST', '/api/v1/session', undefined), body: administrator };
  const signedIn = await asker.must({ kind: 'sign in', session: 'first' }, signIn, ({ headers }) => ({
    cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '',
  }));
  const form = (path: string, body: unknown) => ({ ...asker.form('POST', path, signedIn.cookie), body });
  const certificates = ['web', 'mail', 'db'];
  for (const [name, more] of [...certificates.map((each) => [each, {}] as const), ordered]) {
    const body = { name, domains: [`${name}.test`], ...more };
    await asker.must({ kind: 'create certificate', certificate: name }, form('/api/v1/certificates', body));
  }
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'];
  const key = form('/api/v1/api-keys', { name: 'all', scopes, certificates: ['*'] });
  const { raw = '' } = await asker.must(
    { kind: 'create key', name: 'all', certificate: 'web' },
    key,
    ({ body }) => ({ raw: (JSON.parse(body) as { key: string }).key }),
  );
  const downloads = new NodeDownloads(asker, raw);
  const renewed = [...certificates, ordered[0]];
  return { certificates, renewed, all: raw, chain: await makeChain(), downloads };
}

function firstOf([first]: readonly TormentedNode[]): TormentedNode {
  if (first === undefined) throw new Error('there is no node');
  return first;
}

/**
 * Waits until each kind of deed and each command has succeeded, and a poll was answered with 304, which takes long on a
 * busy machine. Returns early if a promise was broken.
 */
async function eachKind(asker: NodeAsker, { succeeded }: NodeCommands): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const { answers, unchanged } = asker.known();
    const missing = [
      ...crowdKinds.filter((kind) => answers.get(kind) === undefined),
      ...commandNames.filter((name) => succeeded.get(name) === undefined),
      ...(unchanged.length === 0 ? ['a 304'] : []),
    ];
    if (missing.length === 0 || asker.broken.length + asker.troubles.broken.length > 0) return;
    if (performance.now() > deadline) throw new Error(`no answer within a minute: ${missing.join(', ')}`);
    await delay(20);
  }
}

/** Waits until each renewal has ended, also those whose owner was killed. */
async function noOpenRenewals(url: string): Promise<void> {
  const sql = "select id from renewals where status in ('queued', 'running')";
  const deadline = performance.now() + 180_000;
  while ((await withRows(url, (rows) => rows(sql))).length > 0) {
    if (performance.now() > deadline) throw new Error('a renewal is open three minutes after the last round');
    await delay(200);
  }
}

/** Writes the whole logs to files beside those of the nodes, and returns their ends. */
function logsOf(nodes: readonly TormentedNode[], database: TormentedDatabase, folder: string): string {
  const logs = [...nodes.map(({ name, log }) => ({ name, log })), { name: 'database', log: database.log() }];
  for (const { name, log } of logs) writeFileSync(join(folder, `${name}.log`), log);
  return logs.map(({ name, log }) => `--- ${name}\n${log.slice(-3000)}`).join('\n');
}
