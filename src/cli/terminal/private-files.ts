/**
 * Checks owner and mode of everything that holds secrets: a directory, key or database that other users own, or can
 * read or write, is refused with the command that fixes it. Windows has other permissions and is not checked.
 */
import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, dirname, join, sep } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { namesBeside } from '../../crypto/secrets/keyring.ts';
import { databaseIn } from '../../domain/instance/vault-database.ts';

/** The places of the vault's files; `credentialsDir` is the read-only directory of systemd credentials. */
export type PrivatePlaces = {
  readonly dataDir: string;
  readonly masterKeyFile: string;
  readonly credentialsDir?: string | undefined;
};

/** The user who runs this process, and its arguments. */
type Caller = { readonly uid: number; readonly words: readonly string[] };

/** A kind of file that must be private: its name, forbidden mode bits, and the command that fixes the mode. */
type Kind = { readonly name: string; readonly refused: number; readonly fix: string };

const directory: Kind = { name: 'the data directory', refused: 0o077, fix: 'chmod 700' };
const database: Kind = { name: 'the database file', refused: 0o077, fix: 'chmod 600' };
const key: Kind = { name: 'the key file', refused: 0o077, fix: 'chmod 600' };
/** systemd grants a credential to its service by an ACL, which looks like group permissions. */
const credential: Kind = { name: 'the credential', refused: 0o037, fix: 'chmod 400' };
const groupKey: Kind = { ...key, refused: credential.refused, fix: 'chmod 640' };
/** Holds no secret, but says where the secrets are. */
const settings: Kind = { name: 'the settings file', refused: 0o022, fix: 'chmod go-w' };

const program: Kind = { ...settings, name: 'the program' };

type Violation = { readonly what: string; readonly fix: string };

/**
 * Throws OperatorError if other users can access the vault in the directory or its master key. `whenMissing` as in
 * `openVault`: with `refuse`, a directory without a vault is not checked.
 */
export function refuseExposedVault(places: PrivatePlaces, whenMissing: 'create' | 'refuse'): void {
  const caller = callerOf();
  if (caller === undefined) return;
  const { dataDir, masterKeyFile, credentialsDir } = places;
  const names = namesIn(dataDir);
  const databaseName = basename(databaseIn(dataDir).path);
  const hasVault = names?.includes(databaseName) === true;
  if (names !== undefined && !hasVault && whenMissing === 'refuse') return;
  refuseForeignDirectory(dataDir, caller);
  if (names === undefined) return;
  // Never suggest a chmod of a shared directory such as /tmp or a home.
  const isOurs = names.every((name) => /^(vault\.|\.?master\.key|lost\+found$)/.test(name));
  if (!isOurs && !hasVault && violations(dataDir, directory, caller).length > 0) {
    throw new OperatorError(`the directory ${dataDir} holds other files and is open to other users`, {
      hint: 'Use --data-dir to name a directory for the vault alone. The vault creates it if it does not exist.',
    });
  }
  const isCredential = credentialsDir !== undefined && masterKeyFile.startsWith(credentialsDir + sep);
  refuse([
    ...directoriesOf(dataDir).flatMap((path) => violations(path, directory, caller)),
    ...names
      .filter((name) => name.startsWith(databaseName))
      .flatMap((name) => violations(join(dataDir, name), database, caller)),
    ...[masterKeyFile, ...namesBeside(masterKeyFile)].flatMap((path) =>
      violations(path, isCredential ? credential : key, caller),
    ),
  ]);
}

/**
 * Throws OperatorError if other users can read or write a key file that the vault reads. Root may own the file and
 * share it with the vault's user through a group, as Debian does with `ssl-cert`.
 */
export function refuseExposedKeyFile(path: string): void {
  const caller = callerOf();
  if (caller === undefined) return;
  const isShared = caller.uid !== 0 && statOf(path)?.uid === 0;
  refuse(violations(path, isShared ? groupKey : key, caller));
}

/**
 * Throws OperatorError if other users can change the settings file. They may read it, and root may own it. Who runs a
 * command of another user's vault is told to run it as that user: a file that changed its owner would lock the service
 * out.
 */
export async function refuseForeignSettings(path: string, dataDir: string): Promise<void> {
  const caller = callerOf();
  if (caller === undefined) return;
  const found = violationsOf(await stat(path).catch(() => undefined), path, settings, caller);
  if (found.length > 0) refuseForeignDirectory(dataDir, caller);
  refuse(found);
}

/** Throws OperatorError if the data directory belongs to another user, with the command to run as that user. */
export function refuseForeignDataDirectory(dataDir: string): void {
  const caller = callerOf();
  if (caller !== undefined) refuseForeignDirectory(dataDir, caller);
}

/** Throws OperatorError if other users can change a program that handles the master key. */
export function refuseForeignProgram(path: string): void {
  const caller = callerOf();
  if (caller !== undefined) refuse(violations(path, program, caller));
}

/** Undefined on systems without POSIX users. */
function callerOf(): Caller | undefined {
  const uid = process.geteuid?.();
  return uid === undefined ? undefined : { uid, words: process.argv.slice(2) };
}

function namesIn(path: string): string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    // Missing, not a directory or not readable: opening the vault reports it.
    return undefined;
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // As above.
    return undefined;
  }
}

/** The data directory, and the directory that the database resolves to. */
function directoriesOf(dataDir: string): string[] {
  try {
    return [...new Set([realpathSync(dataDir), dirname(realpathSync(databaseIn(dataDir).path))])];
  } catch {
    // No database yet.
    return [dataDir];
  }
}

function refuseForeignDirectory(path: string, { uid, words }: Caller): void {
  const stats = statOf(path);
  if (stats === undefined || !stats.isDirectory() || stats.uid === uid) return;
  const owner = nameOf(stats.uid);
  const as = stats.uid === 0 ? 'sudo' : `sudo -u ${quoted(owner ?? `#${stats.uid}`)}`;
  const where = words.some((word) => /^--data-dir(=|$)/.test(word)) ? [] : ['--data-dir', path];
  const again = `Try: ${[as, 'vault', ...[...words, ...where].map(quoted)].join(' ')}`;
  const take = `${uid === 0 ? '' : 'sudo '}chown -R ${nameOf(uid) ?? uid} ${quoted(path)}`;
  throw new OperatorError(
    `${directory.name} ${path} belongs to ${personOf(stats.uid)}, not to ${personOf(uid)}`,
    {
      hint: `${again}\n  Or, if no server runs as that user, change the owner: ${take}`,
    },
  );
}

function violations(path: string, kind: Kind, caller: Caller): Violation[] {
  return violationsOf(statOf(path), path, kind, caller);
}

function violationsOf(stats: Stats | undefined, path: string, kind: Kind, { uid }: Caller): Violation[] {
  // A directory in place of a file fails when the file is read.
  if (stats === undefined || stats.isDirectory() !== (kind === directory)) return [];
  const mode = stats.mode & 0o7777;
  const isForeign =
    stats.uid !== uid && !(stats.uid === 0 && [credential, groupKey, settings, program].includes(kind));
  const sudo = uid === 0 ? '' : 'sudo ';
  const found: Violation[] = [];
  if (isForeign) {
    found.push({
      what: `${kind.name} ${path} belongs to ${personOf(stats.uid)}, not to ${personOf(uid)}`,
      fix: `${sudo}chown ${nameOf(uid) ?? uid} ${quoted(path)}`,
    });
  }
  if ((mode & kind.refused) !== 0) {
    const access = (mode & kind.refused & 0o022) === 0 ? 'readable' : 'writable';
    found.push({
      what: `${kind.name} ${path} is ${access} by other users (mode ${mode.toString(8).padStart(4, '0')})`,
      fix: `${isForeign || stats.uid === uid ? '' : sudo}${kind.fix} ${quoted(path)}`,
    });
  }
  return found;
}

function refuse(wrong: readonly Violation[]): void {
  if (wrong.length === 0) return;
  const message = wrong.map(({ what }) => what).join(', and ');
  throw new OperatorError(message, { hint: `Fix: ${wrong.map(({ fix }) => fix).join(' && ')}` });
}

function personOf(uid: number): string {
  return nameOf(uid) ?? `the user ${uid}`;
}

/** The user's name from /etc/passwd, if listed. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
    return lines.map((line) => line.split(':')).find(([, , id]) => id === String(uid))?.[0];
  } catch {
    // Without /etc/passwd, show the number.
    return undefined;
  }
}
