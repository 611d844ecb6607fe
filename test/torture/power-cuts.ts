/**
 * Power cuts: one run under full load on a recording disk, whose power is then cut at many moments, each time with
 * another loss of non-durable data. The vault must start on what is left, and every response before the cut must still
 * hold.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AuditTruth } from './audit-truth.ts';
import type { Finding, Order } from './chamber.ts';
import { Crowd, layGround } from './crowd.ts';
import { Disk, type Loss, noLoss, someLoss } from './disk.ts';
import { diskRecords, markLog } from './disk-log.ts';
import { diskShim } from './disk-shim.ts';
import { type Entry, Facts, Ledger } from './ledger.ts';
import { type Place, startServer } from './running-vault.ts';
import { strangeFiles, Truths } from './truths.ts';

export type PowerCutsOptions = {
  readonly cuts: number;
  /** The number and duration of server starts in the recorded run. */
  readonly runs: number;
  readonly seconds: number;
  readonly clients: number;
};

/** The full form: `--cuts N` (400), `--seconds N` (6) of load for each of three starts. */
export async function torturePowerCuts(order: Order): Promise<readonly Finding[]> {
  const { amount } = order;
  return cutPower(order, {
    ...{ cuts: amount('cuts') ?? 400, runs: 3 },
    ...{ seconds: amount('seconds') ?? 6, clients: amount('clients') ?? 6 },
  });
}

/** Records a run, cuts and checks. Throws with all broken promises of the first failing cut. */
export async function cutPower(order: Order, options: PowerCutsOptions): Promise<readonly Finding[]> {
  const { folder, program, chance, say } = order;
  const root = join(folder, 'disk');
  const log = join(folder, 'disk.log');
  const entries = await record(order, options, root, log);
  const { records, answers } = survey(log, entries);
  say(`${records} changes to the disk recorded, with ${answers.length} answers between them`);
  const cuts = moments(order, options.cuts, records, answers);
  const facts = new Facts();
  const disk = new Disk();
  const auditTruth = new AuditTruth(join(folder, 'checkpoints'));
  const counts = { compared: 0, begun: 0 };
  let at = 0;
  for (const entry of diskRecords(log)) {
    if (at === cuts[0]) {
      cuts.shift();
      counts.begun += 1;
      const target = join(folder, `cut-${at}`);
      const loss = someLoss(chance);
      disk.cut(target, loss, chance);
      const broken = await brokenAfter(target, facts);
      if (broken.length > 0) throw new Error(brokenAt(at, target, loss, broken));
      rmSync(target, { recursive: true });
      if (counts.begun % 50 === 0) say(`${counts.begun} power cuts, all answers true`);
    }
    disk.apply(entry);
    if (entry.type === 'mark') facts.apply(entries[entry.number] as Entry);
    at += 1;
  }
  assertSame(disk, root, join(folder, 'whole'), order);
  return [
    { name: 'power cuts', value: counts.begun },
    { name: 'changes to the disk', value: records },
    { name: 'answers', value: facts.answered },
    ...[...facts.answers].sort().map(([kind, value]) => ({ name: `  ${kind}`, value })),
    { name: 'comparisons', value: counts.compared + auditTruth.compared },
  ];

  /** Starts a vault on what is left. */
  async function brokenAfter(target: string, known: Facts): Promise<string[]> {
    const place: Place = { program, data: join(target, 'data'), environment: {} };
    const truths = new Truths();
    const started = startServer(place);
    try {
      const server = await started.listening;
      if (server === undefined) throw new Error('the server is not running');
      const broken = [
        ...truths.ofDatabase(place.data, known, { settle: false }),
        ...(await truths.ofServer(server.url, known, { everything: true })),
        ...(await auditTruth.ofLog(place, known, { everything: true })),
      ];
      counts.compared += truths.compared;
      return broken;
    } catch (error) {
      return [String((error as Error).stack)];
    } finally {
      await started.kill();
    }
  }
}

/** Runs the load on the recording disk. Returns the requests and responses. */
async function record(
  { program, folder, chance }: Order,
  { runs, seconds, clients }: PowerCutsOptions,
  root: string,
  log: string,
): Promise<readonly Entry[]> {
  mkdirSync(root);
  const { environment } = diskShim(folder, root, { log });
  const marks = markLog(log);
  const ledger = new Ledger(marks.mark);
  const place: Place = { program, data: join(root, 'data'), environment };
  const ground = await layGround(place, ledger);
  const crowd = new Crowd(
    { place, folder, ledger, chance: chance.child('crowd'), clients, killedCommands: 0 },
    ground,
  );
  await crowd.pause();
  const crowdDone = crowd.run();
  try {
    for (let run = 0; run < runs; run++) {
      const started = startServer(place);
      try {
        const server = await started.listening;
        crowd.serveAt(server?.url);
        crowd.resume();
        await delay(seconds * 1000);
        await crowd.pause();
        crowd.serveAt(undefined);
        assert.equal(await started.kill('SIGTERM'), '0', started.log());
      } finally {
        await started.kill();
      }
    }
  } finally {
    crowd.leave();
    await crowdDone;
    marks.close();
  }
  assert.deepEqual(crowd.broken, []);
  assert.deepEqual(strangeFiles(place.data), []);
  return ledger.entries;
}

/** The number of records, and the positions of the responses between them. */
function survey(log: string, entries: readonly Entry[]): { records: number; answers: number[] } {
  const answers: number[] = [];
  let records = 0;
  for (const entry of diskRecords(log)) {
    records += 1;
    if (entry.type !== 'mark') continue;
    const told = entries[entry.number];
    if (told !== undefined && 'ended' in told && told.ended.is === 'done') answers.push(records);
  }
  return { records, answers };
}

/** Random moments, half of them right after a response, when the most is promised and the least is durable. */
function moments({ chance }: Order, count: number, records: number, answers: readonly number[]): number[] {
  const chosen = new Set<number>();
  while (chosen.size < Math.min(count, records - 1)) {
    chosen.add(chance.happens(0.5) ? chance.one(answers) : chance.whole(0, records - 1));
  }
  return [...chosen].sort((a, b) => a - b);
}

/** Checks that the record is complete: without losses it must match the real disk, except for memory-mapped files. */
function assertSame(disk: Disk, root: string, target: string, { chance }: Order): void {
  disk.cut(target, noLoss, chance);
  const data = (folder: string) => join(folder, 'data');
  const names = readdirSync(data(root)).sort();
  assert.deepEqual(readdirSync(data(target)).sort(), names, 'the record has other file names than the disk');
  for (const name of names.filter((name) => !name.endsWith('-shm'))) {
    const [kept, real] = [target, root].map((folder) => readFileSync(join(data(folder), name)));
    assert.ok(real !== undefined && kept?.equals(real), `the record of ${name} differs from the disk`);
  }
}

function brokenAt(at: number, target: string, loss: Loss, broken: readonly string[]): string {
  return `power cut after change ${at} (${JSON.stringify(loss)}), in ${target}:\n${broken.slice(0, 20).join('\n')}`;
}
