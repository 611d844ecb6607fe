/**
 * A simulated disk whose power can be cut. From the record of all operations it knows what is durable and what was only
 * written, and creates a possible state after the cut. fsync of a file makes its content durable, fsync of a folder its
 * names. Of everything else any part may survive, sector by sector, torn and out of order.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Chance } from './chamber.ts';
import type { DiskRecord } from './disk-log.ts';

type Change =
  | { readonly offset: number; readonly data: Buffer }
  /** The size after a truncate. */
  | { readonly size: number };

/** The durable content, and the changes since, oldest first. */
class DiskFile {
  durable: Buffer = Buffer.alloc(0);
  changes: Change[] = [];
}

class Folder {
  /** The names as programs see them, and the durable ones. */
  readonly seen = new Map<string, DiskFile | Folder>();
  readonly durable = new Map<string, DiskFile | Folder>();
}

/** The change of one name; undefined removes it. */
type Naming = {
  readonly folder: Folder;
  readonly name: string;
  readonly what: DiskFile | Folder | undefined;
};

/** Names that change together or not at all: a rename is one. */
type Renaming = readonly Naming[];

/** How much of the non-durable changes survives a cut. */
export type Loss = {
  /** Names: none, those up to some moment, any of them, or all. */
  readonly names: 'none' | 'first' | 'any' | 'all';
  /** The share of written sectors that survive. */
  readonly share: number;
  readonly sector: 512 | 4096;
  /** The content of an allocated sector that was never written. */
  readonly unwritten: 'zeros' | 'garbage';
};

/** Picks a random loss. */
export function someLoss(chance: Chance): Loss {
  return {
    names: chance.one(['none', 'first', 'any', 'all']),
    share: chance.one([0, 0, 1, chance.fraction()]),
    sector: chance.one([512, 4096]),
    unwritten: chance.one(['zeros', 'garbage']),
  };
}

/** Nothing is lost, as after a kill. */
export const noLoss: Loss = { names: 'all', share: 1, sector: 4096, unwritten: 'zeros' };

export class Disk {
  readonly #root = new Folder();
  readonly #files = new Map<number, DiskFile>();
  #renamings: Renaming[] = [];

  apply(record: DiskRecord): void {
    switch (record.type) {
      case 'create': {
        const { folder, name } = this.#place(record.path);
        const there = folder.seen.get(name);
        if (there instanceof DiskFile && this.#files.get(record.inode) === there) return;
        const file = new DiskFile();
        this.#files.set(record.inode, file);
        this.#rename({ folder, name, what: file });
        return;
      }
      case 'write':
        this.#file(record.inode).changes.push({ offset: record.offset, data: record.data });
        return;
      case 'truncate':
        this.#file(record.inode).changes.push({ size: record.size });
        return;
      case 'sync':
        this.#sync(record.path, record.inode);
        return;
      case 'link':
      case 'rename': {
        const from = this.#place(record.from);
        const to = this.#place(record.to);
        const what = from.folder.seen.get(from.name);
        const left = record.type === 'rename' ? [{ ...from, what: undefined }] : [];
        this.#rename(...left, { ...to, what });
        return;
      }
      case 'unlink':
        this.#rename({ ...this.#place(record.path), what: undefined });
        return;
      case 'mkdir':
        this.#rename({ ...this.#place(record.path), what: new Folder() });
        return;
      case 'settled':
        for (const file of this.#files.values()) settle(file);
        for (const naming of this.#renamings.flat()) setName(naming.folder.durable, naming);
        this.#renamings = [];
        return;
      case 'mark':
    }
  }

  /** Writes the state after a power cut to the new folder `target`. */
  cut(target: string, { names, share, sector, unwritten }: Loss, chance: Chance): void {
    const all = this.#renamings;
    const kept =
      names === 'all'
        ? all
        : names === 'first'
          ? all.slice(0, chance.whole(0, all.length))
          : all.filter(() => names === 'any' && chance.happens(0.5));
    const put = (folder: Folder, path: string) => {
      mkdirSync(path, { mode: 0o700 });
      const left = new Map(folder.durable);
      for (const naming of kept.flat()) if (naming.folder === folder) setName(left, naming);
      for (const [name, what] of left) {
        const inside = join(path, name);
        if (what instanceof Folder) put(what, inside);
        else {
          writeFileSync(inside, leftOf(what, { share, sector, unwritten }, chance), { mode: 0o600 });
          chmodSync(inside, 0o600);
        }
      }
    };
    put(this.#root, target);
  }

  #sync(path: string, inode: number): void {
    const place = path === '' ? this.#root : this.#place(path).folder.seen.get(this.#place(path).name);
    if (place instanceof Folder) {
      const [now, later] = [true, false].map((here) =>
        this.#renamings.filter((renaming) => renaming.some(({ folder }) => folder === place) === here),
      );
      for (const naming of now?.flat() ?? []) setName(naming.folder.durable, naming);
      this.#renamings = later ?? [];
      return;
    }
    settle(this.#file(inode));
  }

  #rename(...renaming: Renaming): void {
    for (const naming of renaming) setName(naming.folder.seen, naming);
    this.#renamings.push(renaming);
  }

  #file(inode: number): DiskFile {
    const file = this.#files.get(inode);
    if (file === undefined) throw new Error(`the log knows no file ${inode}`);
    return file;
  }

  #place(path: string): { folder: Folder; name: string } {
    const parts = path.split('/');
    const name = parts.pop() ?? '';
    let folder = this.#root;
    for (const part of parts) {
      const next = folder.seen.get(part);
      if (!(next instanceof Folder)) throw new Error(`the log knows no folder ${dirname(path)}`);
      folder = next;
    }
    return { folder, name };
  }
}

function settle(file: DiskFile): void {
  for (const change of file.changes) file.durable = changed(file.durable, change);
  file.changes = [];
}

function setName(names: Map<string, DiskFile | Folder>, { name, what }: Naming): void {
  if (what === undefined) names.delete(name);
  else names.set(name, what);
}

function changed(content: Buffer, change: Change): Buffer {
  if ('size' in change) return resized(content, change.size);
  const { offset, data } = change;
  const room = resized(content, Math.max(content.length, offset + data.length));
  data.copy(room, offset);
  return room;
}

/** The same bytes with this length, in the same memory if it has room. */
function resized(content: Buffer, size: number): Buffer {
  if (size <= content.length) return content.subarray(0, size);
  const { buffer, byteOffset, length } = content;
  if (byteOffset + size <= buffer.byteLength) {
    const longer = Buffer.from(buffer, byteOffset, size);
    longer.fill(0, length);
    return longer;
  }
  const longer = Buffer.from(new ArrayBuffer(Math.max(65_536, size * 2)), 0, size);
  content.copy(longer);
  return longer;
}

function leftOf(
  { durable, changes }: DiskFile,
  { share, sector, unwritten }: Omit<Loss, 'names'>,
  chance: Chance,
): Buffer {
  if (changes.length === 0 || share === 0) return durable;
  let content: Buffer = Buffer.from(new Uint8Array(durable));
  for (const change of changes) {
    if ('size' in change) {
      if (chance.happens(share)) content = resized(content, change.size);
      continue;
    }
    for (const part of sectorsOf(change, sector)) {
      if (!chance.happens(share)) continue;
      const before = content.length;
      content = changed(content, part);
      if (unwritten === 'garbage' && part.offset > before) content.fill(0xa5, before, part.offset);
    }
  }
  return content;
}

/** Splits a write into pieces that a disk writes atomically. */
function* sectorsOf({ offset, data }: { offset: number; data: Buffer }, sector: number) {
  for (let at = 0; at < data.length; ) {
    const size = Math.min(sector - ((offset + at) % sector), data.length - at);
    yield { offset: offset + at, data: data.subarray(at, at + size) };
    at += size;
  }
}
