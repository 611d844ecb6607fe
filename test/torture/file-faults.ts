/**
 * Faults of every file and directory that a running server touches, one by one: each operation that it does there
 * fails, hangs or takes long, and each file is gone for a while. What it touches is what the failing disk has seen, so
 * that a new file is in the table by itself.
 *
 * During each fault clients download and poll. Where the database is not concerned, each answer is right and fast.
 * Afterwards the vault serves as before, by itself or after the start that its last line asks for, and each download is
 * in the audit log.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import type { Chamber, Order } from './chamber.ts';
import { type DiskFault, type DiskShim, diskShim } from './disk-shim.ts';
import { ask, type Place, runCommand, type Server, type Started, startServer } from './running-vault.ts';

export type Pace = {
  /** How long each fault lasts, in milliseconds. */
  readonly faultMs: number;
  /** An answer that needs not the failing disk comes within this time. */
  readonly promptMs: number;
  /** How long the vault may take to serve again after a fault, and to stop. */
  readonly recoveryMs: number;
};

const defaultPace: Pace = { faultMs: 3000, promptMs: 250, recoveryMs: 15_000 };

/** A fault that lasts as long as these are not answered is one that they wait for. */
const leastAnswers = 10;

type Operation = DiskFault['operation'];

/** A row of the table: a file, or several with one pattern, and what is done with it. */
export type Touched = { readonly pattern: string; readonly operation: Operation };

/** What happened during one fault. */
type Outcome = {
  readonly statuses: Readonly<Record<string, number>>;
  readonly slowest: number;
  readonly said: readonly string[];
  /** How the server ended meanwhile; undefined if it still runs. */
  readonly ended: string | undefined;
};

export const errors = { fails: 'EIO', hangs: 'WAIT', slow: 'SLOW' } as const;
export type FaultKind = keyof typeof errors | 'gone';

/** The files of names with numbers and random parts, as one pattern for fnmatch. */
export function patternOf(path: string): string {
  return path
    .replace(/[0-9a-f]{12,}/g, '*')
    .replace(/\d{8}T\d{6}Z/g, '*')
    .replace(/\*(?:[-.]?\*)+/g, '*');
}

/** The rows in the lines that the failing disk wrote. */
export function touchedIn(lines: readonly string[]): Touched[] {
  const rows = new Map<string, Touched>();
  for (const line of lines) {
    const [operation, path] = line.split('\t');
    if (operation === undefined || path === undefined || path === '') continue;
    const row = { pattern: patternOf(path), operation: operation as Operation };
    rows.set(`${row.pattern} ${operation}`, row);
  }
  return [...rows.values()].sort((a, b) =>
    `${a.pattern} ${a.operation}` < `${b.pattern} ${b.operation}` ? -1 : 1,
  );
}

/**
 * What a server that makes a backup, hands out and reads its settings touches: a busy machine needs its time for all of
 * it.
 */
const usedByAll = ['backups/', 'data/vault.db-wal', 'data/vault.lock', 'data/vault.yaml', 'logs/audit.jsonl'];
const learningMs = 120_000;

function hasUsedAll(lines: readonly string[]): boolean {
  const paths = lines.map((line) => line.split('\t')[1] ?? '');
  return usedByAll.every((start) => paths.some((path) => path.startsWith(start)));
}

/** Whether downloads need this file. */
function isOfDatabase(pattern: string): boolean {
  return /^data(?:$|\/vault\.db|\/vault\.lock)/.test(pattern) || pattern === '';
}

/** An answer that needs not the failing disk came late: because of the disk, or because the machine was busy. */
class LateAnswer extends Error {
  constructor(ms: number) {
    super(`an answer took ${ms} ms`);
  }
}

/** A disk makes answers late in each try, a busy machine does not. */
const tries = 3;

/** A vault on the failing disk, with backups, a copy of the audit log and the key each in a directory of its own. */
export class FileScene {
  readonly #program: string;
  readonly #pace: Pace;
  readonly #root: string;
  readonly #disk: DiskShim;
  readonly #seen: string;
  #key = '';
  /** Downloads answered with 200 so far. */
  #handedOut = 0;

  constructor({ program, folder }: Pick<Order, 'program' | 'folder'>, pace: Pace) {
    this.#program = program;
    this.#pace = pace;
    this.#root = join(folder, 'disk');
    this.#seen = join(folder, 'seen');
    mkdirSync(this.#root, { mode: 0o700 });
    this.#disk = diskShim(folder, this.#root, { seen: this.#seen });
  }

  get #place(): Place {
    return { program: this.#program, data: join(this.#root, 'data'), environment: this.#disk.environment };
  }

  async make(): Promise<void> {
    const at = (...path: string[]) => join(this.#root, ...path);
    for (const name of ['data', 'backups', 'logs', 'key']) mkdirSync(at(name), { mode: 0o700 });
    const settings = [
      `master_key_file: ${at('key', 'master.key')}`,
      `backup_dir: ${at('backups')}`,
      `audit_file: ${at('logs', 'audit.jsonl')}`,
    ];
    writeFileSync(at('data', 'vault.yaml'), `${settings.join('\n')}\n`, { mode: 0o600 });
    await this.#run('certificate', 'create', '--name=web', '--domain=web.test');
    const rights = ['--scope=certificates:read', '--certificate=*'];
    this.#key = await this.#run('api-key', 'create', '--name=client', ...rights);
  }

  /** What a server does with which file while it runs, its first backup included. */
  async learn(): Promise<Touched[]> {
    const { started, server } = await this.#start();
    // What the start did as well counts only if it is done again.
    writeFileSync(`${this.#seen}.new`, '');
    renameSync(`${this.#seen}.new`, this.#seen);
    const deadline = performance.now() + learningMs;
    let lines: readonly string[];
    do {
      await this.#use(server, 2 * this.#pace.faultMs);
      lines = readFileSync(this.#seen, 'utf8').split('\n');
    } while (!hasUsedAll(lines) && performance.now() < deadline);
    assert.ok(hasUsedAll(lines), `not all of ${usedByAll.join(', ')} in: ${lines.join('; ')}`);
    assert.equal(await server.kill('SIGTERM'), '0', started.log());
    return touchedIn(lines);
  }

  /** Throws if a promise is broken. */
  async endure(touched: Touched, kind: FaultKind): Promise<Outcome> {
    const { started, server } = await this.#start();
    try {
      const undo = this.#begin(touched, kind);
      const { pattern } = touched;
      const { faultMs } = this.#pace;
      // Where the database waits, so do all.
      const patienceMs = isOfDatabase(pattern) ? faultMs : this.#pace.recoveryMs;
      const used = await this.#use(server, faultMs, patienceMs).finally(undo);
      const ended = await settled(started.ended, 500);
      if (ended === undefined) {
        await this.#recovered(server, started);
        server.kill('SIGTERM');
        assert.equal(
          await settled(started.ended, this.#pace.recoveryMs),
          '0',
          `it does not stop: ${started.log()}`,
        );
      }
      await this.#isWhole();
      if (!isOfDatabase(pattern)) {
        assert.equal(ended, undefined, `the server ended: ${started.log()}`);
        assert.deepEqual(Object.keys(used.statuses), ['200', '304'], JSON.stringify(used));
        if (used.slowest >= this.#pace.promptMs) throw new LateAnswer(used.slowest);
      }
      return { ...used, said: sentencesIn(started.log()), ended };
    } finally {
      await started.kill();
    }
  }

  async #run(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await runCommand(this.#place, args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  async #start(): Promise<{ started: Started; server: Server }> {
    // Without a backup, the first look makes one.
    for (const name of readdirSync(join(this.#root, 'backups')))
      rmSync(join(this.#root, 'backups', name), { force: true });
    const started = startServer(this.#place);
    const server = await started.listening;
    if (server === undefined) throw new Error('the server is not running');
    return { started, server };
  }

  /** Returns a function that ends the fault. */
  #begin({ pattern, operation }: Touched, kind: FaultKind): () => void {
    if (kind !== 'gone') {
      this.#disk.fail({ operation, error: errors[kind], pattern });
      return () => this.#disk.fail();
    }
    const path = join(this.#root, pattern);
    renameSync(path, `${path}.gone`);
    return () => {
      rmSync(path, { recursive: true, force: true });
      renameSync(`${path}.gone`, path);
    };
  }

  /** Clients download and poll for a while, and the settings are read again. */
  async #use(server: Server, ms: number, patienceMs = ms): Promise<Pick<Outcome, 'statuses' | 'slowest'>> {
    const statuses = new Map<string, number>();
    let slowest = 0;
    let etag = '"none"';
    const until = performance.now() + ms;
    process.kill(server.pid, 'SIGHUP');
    for (let turn = 0; performance.now() < until || turn < leastAnswers; turn += 1) {
      const headers = {
        Authorization: `Bearer ${this.#key}`,
        'If-None-Match': turn % 2 === 0 ? '"none"' : etag,
      };
      const began = performance.now();
      const answer = await Promise.race([
        ask(`${server.url}/api/v1/certificates/web/fullchain.crt`, { headers }).catch(() => undefined),
        delay(patienceMs, 'none' as const, { ref: false }),
      ]);
      slowest = Math.max(slowest, performance.now() - began);
      const status = answer === 'none' ? 'none' : String(answer?.status ?? 'closed');
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (answer === 'none') break;
      if (answer?.status === 200) {
        this.#handedOut += 1;
        etag = String(answer.headers.etag);
      }
      await delay(20);
    }
    return { statuses: Object.fromEntries([...statuses].sort()), slowest: Math.round(slowest) };
  }

  async #recovered(server: Server, { log }: Started): Promise<void> {
    const headers = { Authorization: `Bearer ${this.#key}`, 'If-None-Match': '"none"' };
    const until = performance.now() + this.#pace.recoveryMs;
    for (;;) {
      const url = `${server.url}/api/v1/certificates/web/fullchain.crt`;
      const answer = await ask(url, { headers }).catch(() => undefined);
      if (answer?.status === 200) {
        this.#handedOut += 1;
        return;
      }
      assert.ok(performance.now() < until, `it does not recover: ${answer?.status} ${log()}`);
      await delay(50);
    }
  }

  /** Opens the vault again and compares the audit log with what was handed out. */
  async #isWhole(): Promise<void> {
    await this.#run('audit', 'verify');
    const database = new BetterSqlite3(join(this.#root, 'data', 'vault.db'), { readonly: true });
    try {
      assert.equal(database.pragma('integrity_check', { simple: true }), 'ok');
      const sql = "select count(*) from audit_events where action = 'certificate.download'";
      const recorded = database.prepare(sql).pluck().get() as number;
      // What was recorded and whose answer the client did not wait for is counted on.
      assert.ok(recorded >= this.#handedOut, `${this.#handedOut} downloads, ${recorded} of them recorded`);
      this.#handedOut = recorded;
    } finally {
      database.close();
    }
  }
}

async function settled<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  return Promise.race([promise, delay(ms, undefined, { ref: false })]);
}

/** What the log says at warn and above, without times. */
function sentencesIn(log: string): string[] {
  const lines = log.split('\n').filter((line) => line.startsWith('{'));
  const said = lines.map((line) => JSON.parse(line) as { msg: string; err?: { message: string } });
  return [...new Set(said.map(({ msg, err }) => (err === undefined ? msg : `${msg}: ${err.message}`)))];
}

export type Cell = { readonly row: Touched; readonly kind: FaultKind };

/** Each row with each fault, and each file of the others once gone: lost-files has those of the database. */
export function cellsOf(rows: readonly Touched[]): Cell[] {
  const kept = new Map(rows.map((row) => [row.pattern, row]));
  const gone = [...kept.values()].filter(
    // A note of a restore is looked for, but not there.
    ({ pattern }) => !pattern.includes('*') && !pattern.endsWith('.pending') && !isOfDatabase(pattern),
  );
  return [
    ...rows.flatMap((row) => Object.keys(errors).map((kind) => ({ row, kind: kind as FaultKind }))),
    ...gone.map((row) => ({ row, kind: 'gone' as const })),
  ];
}

export const fileFaults: Chamber = async ({ program, folder, say }) => {
  const scene = new FileScene({ program, folder }, defaultPace);
  await scene.make();
  const rows = await scene.learn();
  say(`${rows.length} operations on ${new Set(rows.map(({ pattern }) => pattern)).size} files`);
  let cells = 0;
  const broken: string[] = [];
  const words = new Map<string, Map<FaultKind, string>>();
  for (const { row, kind } of cellsOf(rows)) {
    cells += 1;
    const title = `${row.pattern}, ${row.operation} ${kind}`;
    try {
      const { statuses, slowest, said, ended = '' } = await endureOf(scene, row, kind);
      const answers = JSON.stringify(statuses);
      say(`${title}: ${answers} ${slowest} ms ${ended} ${said.join(' | ').slice(0, 200)}`);
      const of = `${row.pattern}\t${kind === 'gone' ? '' : row.operation}`;
      words.set(of, (words.get(of) ?? new Map()).set(kind, wordFor({ statuses, slowest, said, ended })));
    } catch (error) {
      say(`BROKEN ${title}: ${(error as Error).message.slice(0, 600)}`);
      broken.push(title);
    }
  }
  for (const line of tableOf(words)) say(line);
  if (broken.length > 0) throw new Error(`broken promises: ${broken.join('; ')}`);
  return [{ name: 'faults of single files and directories', value: cells }];
};

async function endureOf(scene: FileScene, row: Touched, kind: FaultKind): Promise<Outcome> {
  for (let tried = 1; ; tried += 1) {
    try {
      return await scene.endure(row, kind);
    } catch (error) {
      if (!(error instanceof LateAnswer) || tried === tries) throw error;
    }
  }
}

/** What a client sees: `200`, `late`, `503`, or `waits` for the end of the fault. */
function wordFor({ statuses, slowest, ended }: Outcome): string {
  const more = ended === undefined || ended === '' ? '' : ', then the server ends';
  if (statuses.none !== undefined) return `waits${more}`;
  if (statuses['503'] !== undefined) return `503${more}`;
  return `${slowest < defaultPace.promptMs ? '200' : 'late'}${more}`;
}

/** The lines of a Markdown table: operations on a file that are alike share a row. */
function tableOf(words: ReadonlyMap<string, ReadonlyMap<FaultKind, string>>): string[] {
  const rows = new Map<string, string[]>();
  for (const [of, found] of words) {
    const [pattern = '', operation = ''] = of.split('\t');
    const kinds = operation === '' ? ['gone' as const] : (Object.keys(errors) as FaultKind[]);
    const cells = kinds.map((kind) => found.get(kind) ?? 'broken').join(' | ');
    const key = `${pattern}\t${cells}`;
    rows.set(key, [...(rows.get(key) ?? []), operation || 'gone']);
  }
  const lines = [...rows].map(([key, operations]) => {
    const [pattern, cells] = key.split('\t');
    return `| `.concat('`', pattern ?? '', '` | ', operations.join(', '), ' | ', cells ?? '', ' |');
  });
  return ['| file | operation | fails | hangs | slow |', '|---|---|---|---|---|', ...lines];
}
