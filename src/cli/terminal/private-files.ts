/**
 * What holds secrets must be the vault's alone: a directory, key or database that others can read or write, or that belongs
 * to somebody else, is refused with the command that mends it. Windows has other rights and is left alone.
 */
import { readdirSync, readFileSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import { namesBeside } from '../../crypto/keyring.ts';

/** Where the vault's files are; `credentialsDir` is what the service manager made for this process, read-only. */
export type PrivatePlaces = {
  readonly dataDir: string;
  readonly masterKeyFile: string;
  readonly credentialsDir?: string | undefined;
};

/** Who runs this, and by which words. */
type Caller = { readonly uid: number; readonly words: readonly string[] };

/** A thing that must be private: what it is called, and the bits of its mode that it must not have. */
type Kind = { readonly name: string; readonly refused: number; readonly mend: string };

const directory: Kind = { name: 'the data directory', refused: 0o077, mend: 'chmod 700' };
const database: Kind = { name: 'the database file', refused: 0o077, mend: 'chmod 600' };
const key: Kind = { name: 'the key file', refused: 0o077, mend: 'chmod 600' };
/** systemd shows a credential to its service by an access list, which looks like rights of the group. */
const credential: Kind = { name: 'the credential', refused: 0o037, mend: 'chmod 400' };
const lentKey: Kind = { ...key, refused: credential.refused, mend: 'chmod 640' };
/** It holds no secret, but says where the secrets are. */
const settings: Kind = { name: 'the settings file', refused: 0o022, mend: 'chmod go-w' };

const program: Kind = { ...settings, name: 'the program' };

type Wrong = { readonly what: string; readonly mend: string };

/**
 * Throws OperatorError where the vault in the directory, or its master key, is not this user's alone. Where no vault is,
 * `whenMissing` is as in `openVault`: a directory in which none will be made is not looked at.
 */
export function refuseExposedVault(places: PrivatePlaces, whenMissing: 'create' | 'refuse'): void {
  const caller = callerOf();
  if (caller === undefined) return;
  const { dataDir, masterKeyFile, credentialsDir } = places;
  const names = namesIn(dataDir);
  const hasVault = names?.includes('vault.db') === true;
  if (names !== undefined && !hasVault && whenMissing === 'refuse') return;
  refuseForeignDirectory(dataDir, caller);
  if (names === undefined) return;
  // Nobody shall be led to take the rights of others from /tmp or from a home.
  const isOurs = names.every((name) => /^(vault\.|\.?master\.key|lost\+found$)/.test(name));
  if (!isOurs && !hasVault && lookAt(dataDir, directory, caller).length > 0) {
    throw new OperatorError(`the directory ${dataDir} is shared with other users, and holds other things`, {
      hint: 'Name a directory of its own with --data-dir; it is made where there is none.',
    });
  }
  const isCredential = credentialsDir !== undefined && masterKeyFile.startsWith(credentialsDir + sep);
  refuse([
    ...directoriesOf(dataDir).flatMap((path) => lookAt(path, directory, caller)),
    ...names
      .filter((name) => name.startsWith('vault.db'))
      .flatMap((name) => lookAt(join(dataDir, name), database, caller)),
    ...[masterKeyFile, ...namesBeside(masterKeyFile)].flatMap((path) =>
      lookAt(path, isCredential ? credential : key, caller),
    ),
  ]);
}

/**
 * Throws OperatorError where others can read or write a private key that somebody else keeps for the vault. Root may lend
 * it to the vault's user by a group, as Debian does with `ssl-cert`.
 */
export function refuseExposedKeyFile(path: string): void {
  const caller = callerOf();
  if (caller === undefined) return;
  const isLent = caller.uid !== 0 && found(path)?.uid === 0;
  refuse(lookAt(path, isLent ? lentKey : key, caller));
}

/** Throws OperatorError where others can change the settings. They may read them, and root may have written them. */
export function refuseForeignSettings(path: string): void {
  const caller = callerOf();
  if (caller !== undefined) refuse(lookAt(path, settings, caller));
}

/** Throws OperatorError where others can change a program that handles the master key. */
export function refuseForeignProgram(path: string): void {
  const caller = callerOf();
  if (caller !== undefined) refuse(lookAt(path, program, caller));
}

/** Undefined where the system has no such users. */
function callerOf(): Caller | undefined {
  const uid = process.geteuid?.();
  return uid === undefined ? undefined : { uid, words: process.argv.slice(2) };
}

function namesIn(path: string): string[] | undefined {
  try {
    return readdirSync(path);
  } catch {
    // Missing, no directory, or not to be read: whoever opens the vault says what else is wrong.
    return undefined;
  }
}

function found(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // As above.
    return undefined;
  }
}

/** The data directory, and the one where the database really is. */
function directoriesOf(dataDir: string): string[] {
  try {
    return [...new Set([realpathSync(dataDir), dirname(realpathSync(join(dataDir, 'vault.db')))])];
  } catch {
    // There is no database yet.
    return [dataDir];
  }
}

function refuseForeignDirectory(path: string, { uid, words }: Caller): void {
  const stats = found(path);
  if (stats === undefined || !stats.isDirectory() || stats.uid === uid) return;
  const owner = nameOf(stats.uid);
  const as = stats.uid === 0 ? 'sudo' : `sudo -u ${quoted(owner ?? `#${stats.uid}`)}`;
  const where = words.some((word) => /^--data-dir(=|$)/.test(word)) ? [] : ['--data-dir', path];
  const again = `Run it as that user: ${[as, 'vault', ...[...words, ...where].map(quoted)].join(' ')}`;
  const take = `${uid === 0 ? '' : 'sudo '}chown -R ${nameOf(uid) ?? uid} ${quoted(path)}`;
  throw new OperatorError(
    `${directory.name} ${path} belongs to ${personOf(stats.uid)}, not to ${personOf(uid)}`,
    {
      hint: `${again}\n  Or, if it shall be this user's: ${take}`,
    },
  );
}

function lookAt(path: string, kind: Kind, { uid }: Caller): Wrong[] {
  const stats = found(path);
  // A directory in the place of a file is refused by whoever reads the file.
  if (stats === undefined || stats.isDirectory() !== (kind === directory)) return [];
  const mode = stats.mode & 0o7777;
  const isForeign =
    stats.uid !== uid && !(stats.uid === 0 && [credential, lentKey, settings, program].includes(kind));
  const sudo = uid === 0 ? '' : 'sudo ';
  const wrong: Wrong[] = [];
  if (isForeign) {
    wrong.push({
      what: `${kind.name} ${path} belongs to ${personOf(stats.uid)}, not to ${personOf(uid)}`,
      mend: `${sudo}chown ${nameOf(uid) ?? uid} ${quoted(path)}`,
    });
  }
  if ((mode & kind.refused) !== 0) {
    const verb = (mode & kind.refused & 0o022) === 0 ? 'read' : 'written';
    wrong.push({
      what: `${kind.name} ${path} can be ${verb} by other users (mode ${mode.toString(8).padStart(4, '0')})`,
      mend: `${isForeign || stats.uid === uid ? '' : sudo}${kind.mend} ${quoted(path)}`,
    });
  }
  return wrong;
}

function refuse(wrong: readonly Wrong[]): void {
  if (wrong.length === 0) return;
  const message = wrong.map(({ what }) => what).join(', and ');
  throw new OperatorError(message, { hint: `Mend it: ${wrong.map(({ mend }) => mend).join(' && ')}` });
}

function personOf(uid: number): string {
  return nameOf(uid) ?? `the user ${uid}`;
}

/** The user's name where the machine itself knows it. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
    return lines.map((line) => line.split(':')).find(([, , id]) => id === String(uid))?.[0];
  } catch {
    // Without such a file, users are numbers.
    return undefined;
  }
}

/** As one word of a shell's. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9@%+=:,./_-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
