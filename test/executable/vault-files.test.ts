/**
 * The files of a vault, what can be wrong with each, and what each command makes of it: it works, or it is refused with
 * a sentence that says what to do. None creates a vault, empties a file or removes a backup, and whatever was refused
 * works again when the file is back.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { backupPassphrase } from '../harness/database/backup-fixtures.ts';
import {
  type FileState,
  fileStates,
  layScene,
  namesIn,
  pictureOf,
  sceneNames,
  spoil,
  startInside,
  type VaultFile,
  vaultFiles,
} from '../harness/processes/vault-files.ts';
import { type Outcome, runInside } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

type Verdict = 'works' | RegExp;

/** What start, command, backup and doctor do, and what a restore with --replace does. */
type Row = Readonly<Record<FileState, readonly [others: Verdict, restore: Verdict | 'works or refused']>>;

const foreign = /belongs to (nobody|the user 65534), not to /;
const noFile = /is (a directory|a symbolic link); the database must be a regular file/;
const notLast = /is older than its mark: it ends at audit event \d+ of \d+/;

const works = ['works', 'works'] as const;
const refused = (sentence: RegExp) => [sentence, sentence] as const;
const restorable = (sentence: RegExp) => [sentence, 'works'] as const;
const onlyRestore = (sentence: RegExp) => ['works', sentence] as const;

const table: Readonly<Record<VaultFile, Row>> = {
  database: {
    missing: restorable(/vault\.db is missing, but its log \S+-wal contains \d+ KiB of data/),
    empty: restorable(/vault\.db is empty, but its log \S+-wal contains \d+ KiB of data/),
    truncated: restorable(/is damaged/),
    older: restorable(/is older than its log|is damaged/),
    // Its log stayed behind: SQLite looks for it beside the file itself.
    'a link': [notLast, 'works or refused'],
    'on another disk': [notLast, 'works or refused'],
    'a directory': refused(noFile),
    "another user's": refused(foreign),
  },
  log: {
    missing: restorable(notLast),
    empty: restorable(notLast),
    truncated: restorable(notLast),
    older: restorable(/is damaged|is older than its mark/),
    'a link': refused(noFile),
    'on another disk': refused(noFile),
    'a directory': refused(noFile),
    "another user's": refused(foreign),
  },
  'shared memory': {
    missing: works,
    empty: works,
    truncated: works,
    older: works,
    'a link': refused(noFile),
    'on another disk': refused(noFile),
    'a directory': refused(noFile),
    "another user's": refused(foreign),
  },
  'master key': {
    missing: restorable(/master\.key is missing/),
    empty: refused(/master\.key is not a master key: it has 0 bytes/),
    truncated: refused(/master\.key is not a master key: it has 16 bytes/),
    older: restorable(/master\.key is not the master key of the vault/),
    'a link': works,
    'on another disk': works,
    'a directory': refused(/cannot read the master key file .*: is a directory/),
    "another user's": refused(foreign),
  },
  mark: {
    missing: works,
    empty: works,
    truncated: works,
    older: works,
    'a link': works,
    'on another disk': works,
    'a directory': works,
    "another user's": works,
  },
  settings: {
    missing: works,
    empty: works,
    truncated: refused(/vault\.yaml: not a list of settings/),
    older: works,
    'a link': works,
    'on another disk': works,
    'a directory': refused(/vault\.yaml: is a directory/),
    "another user's": refused(foreign),
  },
  backup: {
    missing: onlyRestore(/cannot read .*x\.backup: no such file or directory\n/),
    empty: onlyRestore(/x\.backup is not a vault backup/),
    truncated: onlyRestore(/x\.backup is not a vault backup, or is truncated/),
    older: works,
    'a link': works,
    'on another disk': works,
    'a directory': onlyRestore(/cannot read .*x\.backup: is a directory|x\.backup is not a vault backup/),
    "another user's": works,
  },
  'note of a restore': {
    missing: works,
    empty: refused(/cannot complete an interrupted restore/),
    truncated: refused(/cannot complete an interrupted restore/),
    older: works,
    'a link': works,
    'on another disk': works,
    'a directory': refused(/cannot complete an interrupted restore/),
    "another user's": works,
  },
};

const commands: Readonly<Record<string, (scene: string) => Promise<Outcome>>> = {
  start: (scene) => startInside(join(scene, 'data')),
  command: (scene) =>
    runInside(['certificate', 'create', '--name=new', '--domain=n.test', '--data-dir', join(scene, 'data')]),
  backup: (scene) =>
    runInside(['backup', join(scene, 'backups', 'new.backup'), '--data-dir', join(scene, 'data')]),
  restore: (scene) =>
    runInside([
      ...['restore', join(scene, vaultFiles.backup), '--replace', '--data-dir', join(scene, 'data')],
      ...['--passphrase-file', join(scene, 'passphrase')],
    ]),
  doctor: async (scene) => {
    const args = ['doctor', '--offline', '--json', '--url=http://127.0.0.1:1'];
    const { stdout } = await runInside([...args, '--data-dir', join(scene, 'data')]);
    const { findings } = JSON.parse(stdout) as {
      findings: { check: string; status: string; message: string; hint?: string }[];
    };
    // No server runs here.
    const [bad] = findings.filter(({ check, status }) => status === 'failed' && check !== 'serving');
    if (bad === undefined) return { code: 0, stdout: '', stderr: '' };
    return { code: 1, stdout: '', stderr: `vault: ${bad.message}\n  ${bad.hint ?? ''}\n` };
  },
};

/** A file system in memory where there is one: the table syncs thousands of files. */
const memory = fs.existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

for (const file of Object.keys(vaultFiles) as VaultFile[]) {
  test(`with the ${file} missing, empty, truncated, older, a link, a directory or foreign, nothing is lost`, async (t) => {
    const root = fs.mkdtempSync(join(memory, 'vault-files-'));
    t.after(() => fs.rmSync(root, { recursive: true }));
    const scenes = await layScene(root);
    const places = { older: scenes.older, otherDisk: join(tempDir(t), 'file') };
    for (const state of fileStates) {
      if (state === "another user's" && process.getuid?.() !== 0) continue;
      const [others, restoring] = table[file][state];
      for (const [command, run] of Object.entries(commands)) {
        const cell = `${file} ${state}, ${command}`;
        const scene = join(root, 'scene');
        fs.rmSync(scene, { recursive: true, force: true });
        fs.cpSync(scenes.now, scene, { recursive: true });
        fs.writeFileSync(join(scene, 'passphrase'), backupPassphrase, { mode: 0o600 });
        const undo = spoil(scene, file, state, places);
        const before = pictureOf(scene);
        const said = await run(scene);
        const after = pictureOf(scene);
        const verdict = command === 'restore' ? restoring : others;
        const hasWorked = verdict === 'works or refused' ? said.code === 0 : verdict === 'works';
        assert.equal(said.code, hasWorked ? 0 : 1, `${cell}: ${said.stderr}`);
        if (hasWorked) {
          const isOld = command === 'restore' && file === 'backup' && state === 'older';
          const names = isOld ? ['a1'] : [...sceneNames, ...(command === 'command' ? ['new'] : [])];
          assert.deepEqual(await namesIn(join(scene, 'data')), names, cell);
        } else {
          if (verdict instanceof RegExp) assert.match(said.stderr, verdict, cell);
          assert.match(said.stderr, /^vault: \S.+\n {2}\S.+\n/, `${cell}: it says what to do`);
          assert.deepEqual(unfolded(after, file), unfolded(before, file), `${cell}: nothing was changed`);
          undo();
          assert.deepEqual(
            await namesIn(join(scene, 'data')),
            sceneNames,
            `${cell}: all is there when it is back`,
          );
        }
        for (const kept of Object.keys(before).filter((name) => name.startsWith('backups/'))) {
          assert.equal(after[kept], before[kept], `${cell}: ${kept} stays`);
        }
      }
    }
  });
}

/**
 * With another master key the log is folded into the file before the key is found wrong; both together hold the same.
 */
function unfolded(picture: Record<string, string>, file: VaultFile): Record<string, string> {
  if (file !== 'master key') return picture;
  const { 'data/vault.db': _, 'data/vault.db-wal': __, ...rest } = picture;
  return rest;
}
