/**
 * Decides whether a path of the settings can be trusted. Others who can write to a directory on it, or own a link on
 * it, decide which program runs and where a file goes.
 */
import { type FileHandle, open, readFile } from 'node:fs/promises';
import { OperatorError } from '../operator-error.ts';
import { callerUid } from './caller.ts';
import { quoted } from './shell-word.ts';
import { type Fault, type Walk, walk } from './walk.ts';

export type TrustedUse = {
  /** Begins the message: `the master key command`. */
  readonly what: string;
  /**
   * What a group may write to: `nothing`, the directories `above` the target, or `all`. Everyone may write to nothing,
   * and other users own nothing.
   */
  readonly groups: 'nothing' | 'above' | 'all';
  /** A directory that was checked already (see `walk`). */
  readonly trusted?: string | undefined;
};

/** What others can change on a path, in a sentence and with the command that fixes it. */
export type Untrusted = { readonly message: string; readonly hint: string };

/** A path, and why it must not be used: `refused`, or what its operator should know: `tolerated`. */
export type Judged = {
  readonly walked: Walk;
  readonly refused: Untrusted | undefined;
  readonly tolerated: Untrusted | undefined;
};

/** Walks the absolute path and judges what it finds. A path that leads nowhere is judged as far as it exists. */
export async function judgePath(path: string, { what, groups, trusted }: TrustedUse): Promise<Judged> {
  const walked = await walk(path, trusted === undefined ? {} : { trusted });
  const isTolerated = ({ by, isTarget }: Fault) =>
    by === 'group' && (groups === 'all' || (groups === 'above' && !isTarget));
  const [refused, tolerated] = await Promise.all(
    [walked.faults.filter((fault) => !isTolerated(fault)), walked.faults.filter(isTolerated)].map((faults) =>
      faults.length === 0 ? undefined : untrusted(what, path, faults),
    ),
  );
  return { walked, refused, tolerated };
}

/** Throws OperatorError, with the command that fixes it, if others can change the path. Returns where it leads. */
export async function refuseUntrusted(path: string, use: TrustedUse): Promise<Walk> {
  const { walked, refused } = await judgePath(path, use);
  if (refused !== undefined) throw new OperatorError(refused.message, { hint: refused.hint });
  return walked;
}

/**
 * Opens the file that a walk found, to read it; undefined if the walk found none. What was checked is what is open:
 * throws OperatorError if another file is there by now.
 */
export async function openWalked({ real, target }: Walk): Promise<FileHandle | undefined> {
  if (target?.isFile() !== true) return undefined;
  const file = await open(real);
  try {
    const { dev, ino } = await file.stat();
    if (dev === target.dev && ino === target.ino) return file;
    throw new OperatorError(`${real} was replaced while the vault checked it`, { hint: 'Try again.' });
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function untrusted(what: string, path: string, faults: readonly Fault[]): Promise<Untrusted> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const said = faults.map((fault) => {
    const state = stateOf(fault, users);
    return fault.path === path ? state : `the ${fault.kind} ${fault.path} ${state}`;
  });
  const isAlone = faults.every((fault) => fault.path === path);
  const message = `${what} ${path} ${isAlone ? '' : 'can be changed by other users: '}${said.join(', and ')}`;
  const fixes = faults.map((fault) => fixOf(fault, users));
  const hint = fixes.every((fix) => fix !== undefined)
    ? `Fix: ${fixes.join(' && ')}\n  Or use another path, which only root and the user that runs the vault can change.`
    : 'Use a path that only root and the user that runs the vault can change.';
  return { message, hint };
}

function stateOf({ by, uid, mode }: Fault, users: string): string {
  if (by === 'owner') return `belongs to ${nameIn(users, uid) ?? `the user ${uid}`}`;
  const who = by === 'group' ? 'its group' : 'other users';
  return `is writable by ${who} (mode ${mode.toString(8).padStart(4, '0')})`;
}

/** Undefined for a shared directory such as /tmp, and for what others own on the way, such as their homes. */
function fixOf({ path, by, uid, mode, isTarget }: Fault, users: string): string | undefined {
  const me = callerUid() ?? 0;
  const sudo = me === 0 ? '' : 'sudo ';
  if (by !== 'owner') {
    if ((mode & 0o1000) !== 0) return undefined;
    const classes = `${(mode & 0o020) === 0 ? '' : 'g'}${(mode & 0o002) === 0 ? '' : 'o'}`;
    return `${uid === me ? '' : sudo}chmod ${classes}-w ${quoted(path)}`;
  }
  return isTarget ? `${sudo}chown ${nameIn(users, me) ?? me} ${quoted(path)}` : undefined;
}

/** The user's name in the text of /etc/passwd, if listed. */
function nameIn(users: string, uid: number): string | undefined {
  const lines = users.split('\n').map((line) => line.split(':'));
  return lines.find(([, , id]) => id === String(uid))?.[0];
}
