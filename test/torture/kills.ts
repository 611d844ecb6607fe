/**
 * kill -9 of the executable and of some commands, at random moments under full load. After each kill it starts again,
 * and every response that it gave must still hold.
 */

import assert from 'node:assert/strict';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import { AuditTruth } from './audit-truth.ts';
import type { Finding, Order } from './chamber.ts';
import { Crowd, layGround } from './crowd.ts';
import { Ledger } from './ledger.ts';
import { type Place, type Server, type Started, startServer } from './running-vault.ts';
import { strangeFiles, Truths } from './truths.ts';
import { WantedAnswers } from './wanted-answers.ts';

export type KillsOptions = {
  readonly kills: number;
  /** The number of concurrent downloads. */
  readonly clients: number;
};

/** The minimum number of responses before a kill. */
const leastAnswers = 5;

/** The full form: `--kills N` (200). */
export async function tortureByKills(order: Order): Promise<readonly Finding[]> {
  const kills = order.amount('kills') ?? 200;
  const clients = order.amount('clients') ?? 8;
  return kill(order, { kills, clients });
}

/** Kills and checks repeatedly. Throws with all broken promises. */
export async function kill(order: Order, options: KillsOptions): Promise<readonly Finding[]> {
  const { folder, program, chance, say } = order;
  const temporary = join(folder, 'tmp');
  mkdirSync(temporary);
  const place: Place = { program, data: join(folder, 'data'), environment: { TMPDIR: temporary } };
  const ledger = new Ledger();
  const ground = await layGround(place, ledger);
  const crowd = new Crowd(
    {
      ...{ place, folder, ledger, chance: chance.child('crowd') },
      ...{ clients: options.clients, killedCommands: 0.15 },
    },
    ground,
  );
  const truths = new Truths();
  const auditTruth = new AuditTruth(join(folder, 'checkpoints'));
  const wanted = new WantedAnswers(options.kills, chance.child('wanted'));
  const startups: number[] = [];
  let young = 0;
  let errors = '';
  await crowd.pause();
  const crowdDone = crowd.run();
  let running: Started | undefined;
  try {
    for (let kills = 0; kills < options.kills; ) {
      const began = performance.now();
      const started = startServer(place);
      running = started;
      // Some are killed before they listen.
      const roundsLeft = options.kills - kills;
      const isCutShort = chance.happens(0.1) && !wanted.mustWant(roundsLeft);
      const cutShort = isCutShort ? delay(chance.whole(0, 400)).then(() => started.kill()) : undefined;
      const server = await started.listening;
      if (cutShort !== undefined) {
        await cutShort;
        kills += 1;
        young += server === undefined ? 1 : 0;
        continue;
      }
      if (server === undefined) throw new Error('the server is not running');
      startups.push(performance.now() - began);
      await look(server, false);
      crowd.serveAt(server.url);
      const before = crowd.known().answered;
      crowd.resume();
      await delay(chance.whole(50, 1200));
      // On a busy machine, a second may be too short for any load.
      while (crowd.known().answered < before + leastAnswers && crowd.broken.length === 0) await delay(5);
      await crowd.answersOf(wanted.next(roundsLeft));
      await delay(chance.whole(0, 50));
      assert.equal(await server.kill(), 'SIGKILL');
      crowd.serveAt(undefined);
      await crowd.pause();
      errors += complaintsIn(started.log());
      kills += 1;
      if (kills % 20 === 0) say(`${kills} kills, ${crowd.known().answered} answers, all true`);
    }
    return [...(await settle()), ...counts()];
  } finally {
    crowd.serveAt(undefined);
    await running?.kill();
    crowd.leave();
    await crowdDone;
  }

  async function look(server: Server, everything: boolean): Promise<void> {
    if (everything) truths.forget();
    const facts = crowd.known();
    const broken = [
      ...truths.ofDatabase(place.data, facts, { settle: true }),
      ...(await truths.ofServer(server.url, facts, { everything })),
      ...(await auditTruth.ofLog(place, facts, { everything })),
      ...strangeFiles(place.data).map((name) => `${name} is left over in the data directory`),
      ...crowd.broken,
    ];
    if (broken.length > 0) throw new Error(`broken promises:\n${broken.slice(0, 20).join('\n')}`);
  }

  /** The last start: every interrupted renewal finishes, and everything is checked once more. */
  async function settle(): Promise<Finding[]> {
    const open = openRenewals(place.data);
    const started = startServer(place);
    running = started;
    const server = await started.listening;
    if (server === undefined) throw new Error('the last server did not start');
    const deadline = performance.now() + 120_000;
    while (openRenewals(place.data) > 0) {
      if (performance.now() > deadline) throw new Error('a renewal is open two minutes after the last kill');
      await delay(100);
    }
    await look(server, true);
    assert.equal(await server.kill('SIGTERM'), '0');
    errors += complaintsIn(started.log());
    const left = readdirSync(place.data).sort();
    assert.deepEqual(left, ['master.key', 'vault.db', 'vault.mark'], 'a normal stop left a write-ahead log');
    assert.equal(errors, '', 'errors in the log of the server');
    return [{ name: 'renewals interrupted by the last kills', value: open }];
  }

  function counts(): Finding[] {
    const { answers, answered } = crowd.known();
    const sorted = startups.sort((a, b) => a - b);
    return [
      { name: 'kills', value: options.kills },
      { name: 'of them before it listened', value: young },
      { name: 'median start after a kill', value: sorted[Math.floor(sorted.length / 2)] ?? 0, unit: 'ms' },
      { name: 'longest start after a kill', value: sorted.at(-1) ?? 0, unit: 'ms' },
      { name: 'answers', value: answered },
      ...[...answers].sort().map(([kind, value]) => ({ name: `  ${kind}`, value })),
      { name: 'requests without a response, found done', value: truths.doubts.done },
      { name: 'requests without a response, found not done', value: truths.doubts.undone },
      ...[...crowd.refusals].map(([by, value]) => ({ name: `refused: ${by.slice(0, 60)}`, value })),
      { name: 'comparisons', value: truths.compared + auditTruth.compared },
      { name: 'empty folders left by commands in TMPDIR', value: readdirSync(temporary).length },
    ];
  }
}

function openRenewals(data: string): number {
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    const sql = "select count(*) from renewals where status in ('queued', 'running')";
    return database.prepare(sql).pluck().get() as number;
  } finally {
    database.close();
  }
}

/** Error lines in a server's log, and messages of Node. */
function complaintsIn(log: string): string {
  const lines = log.split('\n').filter((line) => /"level":"?(error|fatal)|^\s+at /.test(line));
  return lines.map((line) => `${line}\n`).join('');
}
