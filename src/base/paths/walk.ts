/**
 * Follows a path one component at a time, as the kernel does, and reports each directory, link and file on it that
 * another user could change: who can write to a directory on the way decides which file is behind the path.
 */
import type { Stats } from 'node:fs';
import { lstat, readlink, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { callerUid } from './caller.ts';

/** A component that other users own or can write to. */
export type Fault = {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link';
  /** Owned by a user other than root and the caller, or writable by everyone, or only by the group. */
  readonly by: 'owner' | 'others' | 'group';
  readonly uid: number;
  readonly mode: number;
  /** Whether the path leads here, not just through here. */
  readonly isTarget: boolean;
};

export type Walk = {
  /** The path without links, as far as it exists. */
  readonly real: string;
  /** What the path leads to; undefined if it leads nowhere, or on a system without POSIX users. */
  readonly target: Stats | undefined;
  readonly faults: readonly Fault[];
  /** The error code of the system if the path leads nowhere: ENOENT, ENOTDIR, ELOOP, EACCES … */
  readonly code?: string;
};

/** As in the kernel. */
const maxLinks = 40;

/**
 * Walks an absolute path as the user `uid`. Root and this user may own components, others may not. Others can create
 * entries in a sticky directory such as /tmp, but not replace those of root and of this user, so only what lies in it
 * must be right. Components up to `trusted`, a directory that the caller has checked, are not checked again: `path`
 * begins with it.
 */
export async function walk(
  path: string,
  { uid = callerUid(), trusted }: { readonly uid?: number; readonly trusted?: string } = {},
): Promise<Walk> {
  if (uid === undefined) return { real: path, target: undefined, faults: [] };
  const faults = new Map<string, readonly Fault[]>();
  let at = '/';
  let rest = path.split('/');
  let stats: Stats | undefined;
  let links = 0;
  const ended = (code?: string, target?: Stats): Walk => {
    const found = { real: at, target, faults: [...faults.values()].flat() };
    return code === undefined ? found : { ...found, code };
  };
  const visit = async (entry: string): Promise<Stats> => {
    const found = await lstat(entry);
    const isTarget = !found.isSymbolicLink() && rest.every((name) => name === '' || name === '.');
    faults.set(entry, faultsOf(entry, found, { uid, isTarget }));
    return found;
  };
  try {
    if (trusted === undefined || !path.startsWith(`${trusted}/`)) stats = await visit(at);
    else {
      at = await realpath(trusted);
      rest = path.slice(trusted.length).split('/');
    }
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      if (stats?.isDirectory() === false) return ended('ENOTDIR');
      if (name === '' || name === '.') continue;
      if (name === '..') {
        at = dirname(at);
        continue;
      }
      const entry = join(at, name);
      const found = await visit(entry);
      if (!found.isSymbolicLink()) {
        at = entry;
        stats = found;
        continue;
      }
      links += 1;
      if (links > maxLinks) return ended('ELOOP');
      const target = await readlink(entry);
      rest = [...target.split('/'), ...rest];
      if (target.startsWith('/')) {
        at = '/';
        stats = await visit(at);
      }
    }
    return ended(undefined, await lstat(at));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    return ended(code);
  }
}

type Checked = { readonly uid: number; readonly isTarget: boolean };

function faultsOf(path: string, stats: Stats, { uid, isTarget }: Checked): Fault[] {
  const mode = stats.mode & 0o7777;
  const kind = stats.isSymbolicLink() ? 'link' : stats.isDirectory() ? 'directory' : 'file';
  const fault = { path, kind, uid: stats.uid, mode, isTarget } as const;
  const faults: Fault[] = stats.uid === uid || stats.uid === 0 ? [] : [{ ...fault, by: 'owner' }];
  // The modes of links mean nothing, and those of pipes and devices say who uses them, not what they are.
  const isSafe =
    !(stats.isFile() || stats.isDirectory()) || (kind === 'directory' && !isTarget && (mode & 0o1000) !== 0);
  if (isSafe || (mode & 0o022) === 0) return faults;
  return [...faults, { ...fault, by: (mode & 0o002) === 0 ? 'group' : 'others' }];
}
