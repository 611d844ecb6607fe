/**
 * Power cuts while files are created and replaced: the first start, backups, restores to the same and to another
 * directory, and a migration. Each is recorded, and the power is cut at many moments: every file is complete or
 * missing, and everything that was reported as done is done.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { sourceUrl } from '../harness/processes/racing-processes.ts';
import type { Finding, Order } from './chamber.ts';
import { Disk, type Loss, someLoss } from './disk.ts';
import { diskRecords, markLog } from './disk-log.ts';
import { diskShim } from './disk-shim.ts';
import { type Place, runCommand } from './running-vault.ts';

/** The names of the certificates in every vault and backup on the disk; missing ones are left out. */
type World = {
  readonly vault?: string;
  readonly backup?: string;
  /** Another directory to restore the backup to, with its master key in a third one. */
  readonly second?: string;
  /** A vault with the previous schema, until it is opened. */
  readonly old?: string;
  /** The copy that its migration creates, and the vault that a restore moves aside. */
  readonly copy?: string;
  readonly kept?: string;
};

type Step = { readonly name: string; readonly args: readonly string[]; readonly world: World };

type Holding = keyof World;

/** In the order of the checks: reading the old vault migrates it if necessary. */
const holdings: readonly Holding[] = ['vault', 'backup', 'second', 'old', 'copy', 'kept'];

/** The vault is always checked, the other items if the step changes them. */
const isConcerned = (holding: Holding, before: World, after: World) =>
  before[holding] !== after[holding] ||
  holding === 'vault' ||
  (holding === 'old' && before.copy !== after.copy);

/** The paths in the recorded folder or in what is left of it. */
const placesIn = (root: string) => ({
  vault: join(root, 'vault', 'data'),
  backup: join(root, 'backups', 'x.backup'),
  second: join(root, 'second', 'data'),
  secondKey: join(root, 'keys', 'master.key'),
  old: join(root, 'old'),
});

/** The steps in order, starting with only the old vault and the folder for backups. */
function stepsIn(root: string, passphrase: string): readonly Step[] {
  const { vault, backup, old } = placesIn(root);
  const create = (name: string) => [
    ...['certificate', 'create', '--name', name, '--domain', 'a.test'],
    ...['--data-dir', vault],
  ];
  const withKey = ['--replace', '--with-master-key', '--passphrase-file', passphrase];
  const [one, two, three] = ['one', 'one two', 'one three two'];
  let world: World = { old: 'old' };
  const step = (name: string, args: readonly string[], change: World): Step => {
    world = { ...world, ...change };
    return { name, args, world };
  };
  return [
    step('first start', create('one'), { vault: one }),
    step('backup', ['backup', backup, '--data-dir', vault], { backup: one }),
    step('another certificate', create('two'), { vault: two }),
    step('backup again', ['backup', backup, ...withKey, '--data-dir', vault], { backup: two }),
    step('a third certificate', create('three'), { vault: three }),
    step('restore', ['restore', backup, '--replace', '--data-dir', vault], { vault: two, kept: three }),
    step('restore elsewhere', restoreBeside(root, passphrase), { second: two }),
    step('migration', ['certificate', 'list', '--data-dir', old], { copy: 'old' }),
  ];
}

function restoreBeside(root: string, passphrase: string): string[] {
  const { backup, second, secondKey } = placesIn(root);
  return [
    ...['restore', backup, '--data-dir', second, '--master-key-file', secondKey],
    ...['--passphrase-file', passphrase],
  ];
}

/** `--file-cuts N`: the number of cuts (250). */
export async function tortureFileCuts(order: Order): Promise<readonly Finding[]> {
  return cutFiles(order, { cuts: order.amount('file-cuts') ?? 250 });
}

/** At critical moments everything non-durable is lost; the other cuts are at random moments with random losses. */
export async function cutFiles(
  order: Order,
  { cuts }: { readonly cuts: number },
): Promise<readonly Finding[]> {
  const { folder, program, chance, say } = order;
  const root = join(folder, 'disk');
  const log = join(folder, 'disk.log');
  const passphrase = join(folder, 'passphrase');
  writeFileSync(passphrase, 'correct horse battery staple\n');
  const steps = stepsIn(root, passphrase);
  await record(order, root, log, steps);
  // Use the recorded paths, because an interrupted restore stores absolute paths.
  renameSync(root, join(folder, 'recorded'));
  const moments = choose(log, cuts, order);
  const disk = new Disk();
  let at = 0;
  let step = -1;
  let isUnderWay = false;
  let done = 0;
  for (const entry of diskRecords(log)) {
    const isHard = moments.get(at);
    if (isHard !== undefined) {
      done += 1;
      const loss: Loss = isHard
        ? { names: 'none', share: 0, sector: 512, unwritten: 'zeros' }
        : someLoss(chance);
      disk.cut(root, loss, chance);
      const before = steps[step - 1]?.world ?? { old: 'old' };
      const after = steps[step]?.world ?? before;
      const place = { program, data: '', environment: {} };
      const broken = await brokenIn(place, root, {
        worlds: isUnderWay ? [before, after] : [after, after],
        concerned: holdings.filter((holding) => isConcerned(holding, before, after)),
        passphrase,
        retries: !isHard,
      });
      if (broken.length > 0) {
        const when = `${isUnderWay ? 'during' : 'after'} "${steps[step]?.name}"`;
        throw new Error(`power cut ${when} (change ${at}, ${JSON.stringify(loss)}): ${broken.join('\n')}`);
      }
      rmSync(root, { recursive: true });
      if (done % 50 === 0) say(`${done} power cuts, everything whole`);
    }
    disk.apply(entry);
    if (entry.type === 'mark') {
      isUnderWay = entry.number % 2 === 0;
      step = Math.floor(entry.number / 2);
    }
    at += 1;
  }
  return [
    { name: 'steps', value: steps.length },
    { name: 'changes to the disk', value: at },
    { name: 'power cuts', value: done },
  ];
}

async function record(
  { folder, program }: Order,
  root: string,
  log: string,
  steps: readonly Step[],
): Promise<void> {
  mkdirSync(root);
  const { environment } = diskShim(folder, root, { log });
  const marks = markLog(log);
  const { backup, old } = placesIn(root);
  for (const path of [dirname(backup), old]) spawnSync('mkdir', ['-m', '700', path], { env: environment });
  makeOldVault(old, environment);
  marks.settle();
  for (const [index, { name, args }] of steps.entries()) {
    marks.mark(2 * index);
    const { code, stderr } = await run({ program, data: '', environment }, args);
    if (code !== 0) throw new Error(`${name}: ${stderr}`);
    marks.mark(2 * index + 1);
  }
  // The power can be cut after the last step too.
  marks.settle();
  marks.close();
}

/**
 * Moments of the log, and whether everything non-durable is lost: after each step, and after each sync of one of the
 * two folders in which a database and its master key must appear together.
 */
function choose(log: string, cuts: number, { chance }: Order): ReadonlyMap<number, boolean> {
  const hard: number[] = [];
  let records = 0;
  let settled = 0;
  for (const entry of diskRecords(log)) {
    records += 1;
    if (entry.type === 'settled' && settled === 0) settled = records;
    if (entry.type === 'mark' && entry.number % 2 === 1) hard.push(records);
    if (entry.type === 'sync' && /^(second\/data|keys)$/.test(entry.path)) hard.push(records);
  }
  const moments = new Map(hard.map((at) => [at, true]));
  while (moments.size < Math.min(cuts, records - settled - 1)) {
    const at = chance.whole(settled, records - 1);
    if (!moments.has(at)) moments.set(at, false);
  }
  return moments;
}

type Look = {
  /** The states before and after the step; either is fine. */
  readonly worlds: readonly [World, World];
  /** The items to check. */
  readonly concerned: readonly Holding[];
  readonly passphrase: string;
  /** Whether to retry a missing restore, which is slow. */
  readonly retries: boolean;
};

/** The items that match neither the old nor the new state. */
async function brokenIn(
  place: Place,
  root: string,
  { worlds, concerned, passphrase, retries }: Look,
): Promise<string[]> {
  const { vault, backup, second, secondKey, old } = placesIn(root);
  const broken: string[] = [];
  const must = async (args: readonly string[], why: string) => {
    const { code, stderr } = await run(place, args);
    if (code !== 0) broken.push(`${why}: ${stderr}`);
  };
  const create = ['certificate', 'create', '--name', 'again', '--domain', 'a.test', '--data-dir', vault];
  const found: Readonly<Record<Holding, () => Promise<Found>>> = {
    vault: async () => {
      const now = await namesIn(place, ['--data-dir', vault]);
      // The first command first creates a vault without certificates.
      if (now.names !== undefined && now.names !== '') return now;
      await must(create, 'retrying the first start failed');
      return { ...now, names: undefined };
    },
    backup: () => namesInBackup(place, root, backup, vault),
    second: async () => {
      const now = await namesIn(place, ['--data-dir', second, '--master-key-file', secondKey]);
      const again = restoreBeside(root, passphrase);
      if (retries && now.names === undefined) await must(again, 'retrying the restore failed');
      return now;
    },
    old: () => namesIn(place, ['--data-dir', old]),
    copy: async () => namesInFile(old, /^vault\.db\.before-\d+[a-z-]*$/),
    kept: async () => namesInFile(vault, /^vault\.db\.before-restore-[\dTZ.]+$/),
  };
  for (const holding of concerned) {
    const { names, stderr } = await found[holding]();
    if (worlds.some((world) => world[holding] === names)) continue;
    const allowed = worlds.map((world) => world[holding] ?? 'nothing').join(', or ');
    broken.push(`${holding} has ${names ?? 'nothing'} instead of ${allowed}: ${stderr}`);
  }
  for (const data of [vault, old, second]) {
    const path = join(data, 'vault.db');
    if (existsSync(path) && integrityOf(path) !== 'ok') broken.push(`${path} is damaged`);
  }
  return broken;
}

type Found = { readonly names: string | undefined; readonly stderr: string };

/** Reads a vault with commands and verifies its audit log; undefined if there is no vault. */
async function namesIn(place: Place, where: readonly string[]): Promise<Found> {
  const { code, stdout, stderr } = await run(place, ['certificate', 'list', '--json', ...where]);
  if (code === 0) {
    const verified = await run(place, ['audit', 'verify', ...where]);
    if (verified.code !== 0) return { names: 'an audit log that does not verify', stderr: verified.stdout };
    return { names: (JSON.parse(stdout) as { name: string }[]).map((c) => c.name).join(' '), stderr };
  }
  return { names: /^vault: no vault in /.test(stderr) ? undefined : `something broken`, stderr };
}

/** Restores a backup to another directory; undefined if there is no backup. */
async function namesInBackup(place: Place, root: string, backup: string, vault: string): Promise<Found> {
  if (!existsSync(backup)) return { names: undefined, stderr: '' };
  const target = join(root, 'try');
  const key = ['--master-key-file', join(vault, 'master.key')];
  const { code, stderr } = await run(place, ['restore', backup, '--data-dir', target, ...key]);
  if (code !== 0) return { names: 'something broken', stderr };
  const found = await namesIn(place, ['--data-dir', target, ...key]);
  rmSync(target, { recursive: true });
  return found;
}

/** Reads the database with a matching name; undefined if there is none. */
function namesInFile(folder: string, pattern: RegExp): Found {
  const name = existsSync(folder) ? readdirSync(folder).find((name) => pattern.test(name)) : undefined;
  if (name === undefined) return { names: undefined, stderr: '' };
  const database = new BetterSqlite3(join(folder, name), { readonly: true });
  try {
    const findings = String(database.pragma('integrity_check', { simple: true }));
    if (findings !== 'ok') return { names: 'something damaged', stderr: findings };
    const names = database.prepare('select name from certificates order by name').pluck().all().join(' ');
    return { names, stderr: '' };
  } finally {
    database.close();
  }
}

function integrityOf(path: string): unknown {
  const database = new BetterSqlite3(path, { readonly: true });
  try {
    return database.pragma('integrity_check', { simple: true });
  } finally {
    database.close();
  }
}

/** A vault with the schema before the last migration, and a certificate without a version. */
function makeOldVault(data: string, environment: Readonly<Record<string, string>>): void {
  const script = `
    import { realWorld } from '${sourceUrl('base/world.ts')}';
    import { Keyring } from '${sourceUrl('crypto/secrets/keyring.ts')}';
    import { createMasterKey } from '${sourceUrl('crypto/secrets/master-key-file.ts')}';
    import { Database } from '${sourceUrl('db/database.ts')}';
    import { migrations } from '${sourceUrl('db/sqlite/migrations.ts')}';
    import { bindMasterKey } from '${sourceUrl('domain/master-key/master-key-check.ts')}';
    const data = process.argv[1];
    const masterKey = createMasterKey(data + '/master.key', realWorld);
    const older = Object.fromEntries(Object.entries(migrations).slice(0, -1));
    const db = await Database.open(data + '/vault.db', realWorld, { migrations: older });
    const keyring = new Keyring(data + '/master.key', masterKey);
    await bindMasterKey({ db, keyring, world: realWorld });
    await db.write((writer) => writer.insertInto('certificates').values({
      name: 'old', domains: '["a.test"]', key_type: 'ec256', auto_renew: 0, reuse_key: 0, created_at: 0,
    }).execute());
    await db.close();`;
  const args = ['--input-type=module', '-e', script, data];
  const { status, stderr } = spawnSync(process.execPath, args, {
    env: { ...process.env, ...environment },
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
}

/** Runs a command without --data-dir, which the caller gives. */
async function run(place: Place, args: readonly string[]) {
  const at = args.indexOf('--data-dir');
  const rest = args.filter((_, index) => index !== at && index !== at + 1);
  return runCommand({ ...place, data: args[at + 1] ?? '' }, rest);
}
