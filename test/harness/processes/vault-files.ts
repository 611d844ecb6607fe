/**
 * A vault after a kill with all its files, and the states in which each file can be damaged. Commands run in this
 * process, through the entry point of the executable.
 */
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { realWorld } from '../../../src/base/world.ts';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { beginServing, updateMark } from '../../../src/domain/instance/served-vault.ts';
import { makeBackup } from '../database/backup-fixtures.ts';
import { addCertificates } from '../database/marked-vault.ts';
import { type Outcome, runInside } from './vault-process.ts';

/** The files of a vault, by their name in the table. */
export const vaultFiles = {
  database: 'data/vault.db',
  log: 'data/vault.db-wal',
  'shared memory': 'data/vault.db-shm',
  'master key': 'data/master.key',
  mark: 'data/vault.mark',
  settings: 'data/vault.yaml',
  backup: 'backups/x.backup',
  'note of a restore': 'data/restore.pending',
} as const;

export type VaultFile = keyof typeof vaultFiles;

export const fileStates = [
  'missing',
  'empty',
  'truncated',
  'older',
  'a link',
  'a directory',
  "another user's",
  'on another disk',
] as const;

export type FileState = (typeof fileStates)[number];

const finishedNote = JSON.stringify({ moves: [{ from: 'vault.db.restoring', to: 'vault.db' }] });

/** The certificates of the vault. */
export const sceneNames = ['a1', 'a2', 'a3'];

/**
 * Creates the scene in `root`: `now` is a vault that was killed with a certificate in its write-ahead log, `older` has
 * the same files from two certificates earlier.
 */
export async function layScene(root: string): Promise<{ readonly now: string; readonly older: string }> {
  const live = join(root, 'live');
  const data = join(live, 'data');
  for (const path of [live, data, join(live, 'backups')]) fs.mkdirSync(path, { mode: 0o700 });
  fs.writeFileSync(join(data, 'vault.yaml'), 'log_level: warn\n', { mode: 0o600 });
  const settings = await readSettings({ 'data-dir': data }, {});
  const { vault, close } = await openVault(settings, realWorld, 'create');
  const snapshot = async (name: string) => {
    await updateMark(vault);
    const path = join(root, name);
    fs.cpSync(live, path, { recursive: true });
    return path;
  };
  try {
    await addCertificates(vault, 'a1');
    await beginServing(vault);
    await makeBackup(vault, join(live, 'backups', 'x.backup'), { withKey: true });
    const older = await snapshot('older');
    await addCertificates(vault, 'a2');
    // Like a server that was killed and started again.
    await beginServing(vault);
    await addCertificates(vault, 'a3');
    fs.rmSync(join(live, 'backups', 'x.backup'));
    await makeBackup(vault, join(live, 'backups', 'x.backup'), { withKey: true });
    const now = await snapshot('now');
    fs.writeFileSync(join(older, 'data', 'master.key'), realWorld.randomBytes(32), { mode: 0o600 });
    return { now, older };
  } finally {
    await close();
  }
}

/** Puts a file of the scene in this state. Returns a function that undoes it. */
export function spoil(
  scene: string,
  file: VaultFile,
  state: FileState,
  { older, otherDisk }: { readonly older: string; readonly otherDisk: string },
): () => void {
  const path = join(scene, vaultFiles[file]);
  // Left by a restore that was killed after its last rename.
  if (file === 'note of a restore') fs.writeFileSync(path, finishedNote);
  const aside = join(scene, 'original');
  fs.cpSync(path, aside);
  const content = fs.readFileSync(path);
  const elsewhere = join(scene, 'elsewhere');
  const olderPath = join(older, vaultFiles[file]);
  const change: Readonly<Record<FileState, () => unknown>> = {
    missing: () => fs.rmSync(path),
    empty: () => fs.writeFileSync(path, ''),
    truncated: () => fs.truncateSync(path, Math.floor(content.length / 2)),
    older: () => fs.existsSync(olderPath) && fs.writeFileSync(path, fs.readFileSync(olderPath)),
    'a link': () => {
      fs.renameSync(path, elsewhere);
      fs.symlinkSync(elsewhere, path);
    },
    'a directory': () => {
      fs.rmSync(path);
      fs.mkdirSync(path, { mode: 0o700 });
    },
    "another user's": () => fs.chownSync(path, 65_534, 65_534),
    'on another disk': () => {
      fs.rmSync(path);
      fs.writeFileSync(otherDisk, content, { mode: 0o600 });
      fs.symlinkSync(otherDisk, path);
    },
  };
  change[state]();
  return () => {
    fs.rmSync(path, { recursive: true, force: true });
    fs.cpSync(aside, path);
    fs.chmodSync(path, 0o600);
  };
}

/** The first steps of `vault serve`: opens or creates the vault and checks it. Prints errors like the command. */
export async function startInside(data: string): Promise<Outcome> {
  try {
    const { vault, close } = await openVault(
      await readSettings({ 'data-dir': data }, {}),
      realWorld,
      'create',
    );
    try {
      await vault.db.check();
      await beginServing(vault);
    } finally {
      await close();
    }
    return { code: 0, stdout: '', stderr: '' };
  } catch (error) {
    const { message, hint } = error as { message: string; hint?: string };
    assert.ok(hint !== undefined, `an error without a hint: ${(error as Error).stack}`);
    return { code: 1, stdout: '', stderr: `vault: ${message}\n  ${hint}\n` };
  }
}

/** The contents of the files, except for the shared memory and an empty log, which any read may leave. */
export function pictureOf(scene: string): Record<string, string> {
  const picture: Record<string, string> = {};
  for (const folder of ['data', 'backups']) {
    for (const name of fs.readdirSync(join(scene, folder)).sort()) {
      const path = join(scene, folder, name);
      const stats = fs.statSync(path, { throwIfNoEntry: false });
      if (name.endsWith('-shm') || (name.endsWith('-wal') && stats?.size === 0)) continue;
      picture[`${folder}/${name}`] = stats?.isFile() ? fs.readFileSync(path).toString('base64') : 'directory';
    }
  }
  return picture;
}

/** The names of the certificates, or the error message. */
export async function namesIn(data: string): Promise<string[] | string> {
  const { code, stdout, stderr } = await runInside(['certificate', 'list', '--json', '--data-dir', data]);
  return code === 0 ? (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name).sort() : stderr;
}
