/**
 * The moment at which a restored vault takes the place of another: the process is killed before every single change to
 * a file, and each time either the old vault or the new one is there, whole, with its own master key.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs, { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import BetterSqlite3 from 'better-sqlite3';
import type { OperatorError } from '../../../src/base/operator-error.ts';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { finishRestore, swapIn } from '../../../src/domain/backup/restore-swap.ts';
import { certificateNames } from '../../harness/database/backup-fixtures.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { makeCertificate } from '../../harness/http/fixtures.ts';
import { sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

const killer = fileURLToPath(new URL('../../harness/processes/kill-at.ts', import.meta.url));

/** Swaps the vault in `fresh` into `data`, as `vault restore --replace` does at its end. */
const script = `
  import { join } from 'node:path';
  import { holdDatabase } from '${sourceUrl('db/sqlite/database-lock.ts')}';
  import { swapIn } from '${sourceUrl('domain/backup/restore-swap.ts')}';
  const [, data] = process.argv;
  const held = holdDatabase(join(data, 'vault.db'));
  const move = (name) => ({ from: join(data, name + '.restoring-1'), to: join(data, name) });
  swapIn(data, [move('master.key'), move('vault.db')], held, 'now');
  held.release();
`;

/** Two closed vaults with one certificate each, called like them. */
async function oldAndNew(t: TestContext): Promise<{ template: string; dir: string }> {
  const dir = tempDir(t);
  const template = join(dir, 'template');
  for (const name of ['old', 'new']) {
    const { vault, close } = await testVault(t, {
      dataDir: join(dir, name),
      world: new TestWorld(Date.now()),
    });
    await makeCertificate(vault, name);
    await close();
  }
  cpSync(join(dir, 'old'), template, { recursive: true });
  for (const name of ['master.key', 'vault.db'])
    cpSync(join(dir, 'new', name), join(template, `${name}.restoring-1`));
  return { template, dir };
}

/** Which vault starts in the directory. */
async function whichStarts(data: string): Promise<string> {
  const { vault, isNew, close } = await openVault(settingsFor(data), new TestWorld(Date.now()), 'refuse');
  try {
    assert.equal(isNew, false);
    await vault.db.check();
    return (await certificateNames(vault)).join();
  } finally {
    await close();
  }
}

test(
  'a restore killed at any step leaves either the old or the new vault',
  ofFiles('the restored one takes its place by renames'),
  async (t) => {
    const { template, dir } = await oldAndNew(t);
    const data = join(dir, 'data');
    const seen: string[] = [];
    for (let step = 1; ; step++) {
      rmSync(data, { recursive: true, force: true });
      cpSync(template, data, { recursive: true });
      leaveLog(data);
      const args = ['--import', killer, '--input-type=module', '-e', script, data];
      const env = { ...process.env, KILL_AT: String(step), KILL_UNDER: data };
      const { signal, status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
      const isCutOff = signal === 'SIGKILL';
      assert.ok(isCutOff || status === 0, stderr);
      const started = await whichStarts(data);
      seen.push(started);
      assert.ok(['old', 'new'].includes(started), `step ${step}: ${started}`);
      assert.equal(existsSync(join(data, 'restore.pending')), false, `step ${step}`);
      if (started === 'new') {
        // The other one can be had back by putting the kept files in their places.
        const back = join(dir, `back-${step}`);
        mkdirSync(back, { mode: 0o700 });
        for (const name of ['master.key', 'vault.db']) {
          cpSync(join(data, `${name}.before-restore-now`), join(back, name));
        }
        assert.equal(await whichStarts(back), 'old', `step ${step}`);
      }
      if (!isCutOff) break;
    }
    assert.equal(seen[0], 'old');
    assert.equal(seen.at(-1), 'new');
    assert.equal(
      seen.join().replace(/(old,?)+(new,?)+/, ''),
      '',
      `first always the old one, then the new: ${seen}`,
    );
    assert.ok(seen.length > 8, `${seen.length} steps`);
  },
);

test(
  'an interrupted restore without its new database fails, keeps its note and prints the way back',
  ofFiles('the restored one takes its place by renames'),
  async (t) => {
    const { template, dir } = await oldAndNew(t);
    const data = join(dir, 'data');
    cpSync(template, data, { recursive: true });
    const moves = ['master.key', 'vault.db'].map((name) => ({
      ...{ from: `${name}.restoring-1`, to: name, kept: join(data, `${name}.before`) },
      sha256: createHash('sha256')
        .update(readFileSync(join(data, `${name}.restoring-1`)))
        .digest('hex'),
    }));
    const note = join(data, 'restore.pending');
    writeFileSync(note, JSON.stringify({ moves }));
    rmSync(join(data, 'vault.db.restoring-1'));
    for (let times = 0; times < 2; times += 1) {
      await assert.rejects(whichStarts(data), ({ message, hint }: OperatorError) => {
        assert.match(
          message,
          /^cannot complete an interrupted restore: \S+vault\.db\.restoring-1 is missing$/,
        );
        assert.ok(
          hint?.includes(
            `\n  rm ${note}\n  cp ${join(data, 'master.key.before')} ${join(data, 'master.key')}\n`,
          ),
        );
        return existsSync(note);
      });
    }
  },
);

test(
  'two concurrent starts complete an interrupted restore once',
  ofFiles('the restored one takes its place by renames'),
  async (t) => {
    const { template, dir } = await oldAndNew(t);
    const data = join(dir, 'data');
    cpSync(template, data, { recursive: true });
    const moves = ['master.key', 'vault.db'].map((name) => ({ from: `${name}.restoring-1`, to: name }));
    writeFileSync(join(data, 'restore.pending'), JSON.stringify({ moves }));
    assert.deepEqual(await Promise.all([whichStarts(data), whichStarts(data)]), ['new', 'new']);
    finishRestore(data);
    assert.equal(await whichStarts(data), 'new');
  },
);

test('finishRestore does not fail when another process completes the restore first', (t) => {
  const data = tempDir(t);
  const note = join(data, 'restore.pending');
  writeFileSync(note, JSON.stringify({ moves: [] }));
  const { readFileSync: read } = fs;
  t.mock.method(fs, 'readFileSync', (...args: Parameters<typeof read>) => {
    fs.rmSync(note, { force: true });
    return read(...args);
  });
  syncBuiltinESMExports();
  try {
    finishRestore(data);
  } finally {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  }
  assert.deepEqual(readdirSync(data), []);
});

test('finishRestore fails on a damaged restore note, reports its path and keeps it', (t) => {
  const data = tempDir(t);
  writeFileSync(join(data, 'restore.pending'), 'so what');
  assert.throws(
    () => finishRestore(data),
    /cannot complete an interrupted restore: \S+restore\.pending is damaged$/,
  );
  assert.equal(readFileSync(join(data, 'restore.pending'), 'utf8'), 'so what');
});

test(
  'a restore fails before moving the database while the master key disk is missing, and completes once it is back',
  ofFiles('the restored one takes its place by renames'),
  async (t) => {
    const { template, dir } = await oldAndNew(t);
    const data = join(dir, 'data');
    const [mount, unplugged] = [join(dir, 'mount'), join(dir, 'unplugged')];
    cpSync(template, data, { recursive: true });
    mkdirSync(unplugged);
    mkdirSync(mount);
    cpSync(join(data, 'master.key.restoring-1'), join(unplugged, 'master.key.restoring-1'));
    const key = { from: join(mount, 'master.key.restoring-1'), to: join(mount, 'master.key') };
    const moves = [key, { from: 'vault.db.restoring-1', to: 'vault.db' }];
    writeFileSync(join(data, 'restore.pending'), JSON.stringify({ moves }));
    assert.throws(
      () => finishRestore(data),
      /cannot complete an interrupted restore: \S+ to \S+: no such file or directory$/,
    );
    assert.equal(existsSync(join(data, 'vault.db.restoring-1')), true);
    cpSync(unplugged, mount, { recursive: true });
    finishRestore(data);
    assert.deepEqual(readdirSync(mount), ['master.key']);
    assert.equal(existsSync(join(data, 'restore.pending')), false);
  },
);

test('a damaged database is kept with its WAL files, which are not used for the new database', (t) => {
  const data = tempDir(t);
  const put = (name: string, text: string) => writeFileSync(join(data, name), text);
  for (const suffix of ['', '-wal', '-shm']) put(`vault.db${suffix}`, `old${suffix}`);
  put('vault.db.restoring-1', 'new');
  const moves = [{ from: join(data, 'vault.db.restoring-1'), to: join(data, 'vault.db') }];
  swapIn(data, moves, { state: 'damaged', release: () => undefined }, 'now');
  assert.deepEqual(readdirSync(data).sort(), [
    'vault.db',
    'vault.db-shm.before-restore-now',
    'vault.db-wal.before-restore-now',
    'vault.db.before-restore-now',
  ]);
  assert.equal(readFileSync(join(data, 'vault.db'), 'utf8'), 'new');
  assert.equal(readFileSync(join(data, 'vault.db-wal.before-restore-now'), 'utf8'), 'old-wal');
});

test('the printed way back from an interrupted restore brings back a damaged database with its WAL', (t) => {
  const data = tempDir(t);
  const key = join(data, 'gone', 'master.key');
  const put = (name: string, text: string) => writeFileSync(join(data, name), text);
  const content = () => {
    const names = readdirSync(data).filter((name) => !name.includes('.before-restore-'));
    return names.sort().map((name) => `${name}: ${readFileSync(join(data, name), 'utf8')}`);
  };
  for (const suffix of ['', '-wal']) put(`vault.db${suffix}`, `old${suffix}`);
  const before = content();
  put('vault.db.restoring-1', 'new');
  put('master.key.restoring-1', 'new key');
  const moves = [
    { from: join(data, 'vault.db.restoring-1'), to: join(data, 'vault.db') },
    { from: join(data, 'master.key.restoring-1'), to: key },
  ];
  assert.throws(
    () => swapIn(data, moves, { state: 'damaged', release: () => undefined }, 'now'),
    ({ hint }: OperatorError) => {
      assert.equal(readFileSync(join(data, 'vault.db'), 'utf8'), 'new');
      const [, commands = ''] = hint?.split('To return to the previous vault instead:\n') ?? [];
      execFileSync('sh', ['-e', '-c', commands]);
      return true;
    },
  );
  assert.deepEqual(content(), before);
});

/** Copies a log that was never folded in, as kill -9 leaves it: it holds the only trace of a change. */
function leaveLog(data: string): void {
  const aside = `${data}-aside`;
  cpSync(data, aside, { recursive: true });
  const database = new BetterSqlite3(join(aside, 'vault.db'));
  database.pragma('wal_autocheckpoint = 0');
  database.exec(
    "insert into audit_events (at, actor, action, resource, detail) values (1, 'a', 'a', 'a', '{}')",
  );
  for (const name of ['vault.db', 'vault.db-wal']) cpSync(join(aside, name), join(data, name));
  database.close();
  rmSync(aside, { recursive: true });
}
