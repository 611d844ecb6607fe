/** Reads the log of disk-shim.c: its records in order, and the marks of a test between them. */
import { closeSync, openSync, readSync, writeSync } from 'node:fs';

/** `inode` identifies existing files; the number of a removed file is reused. */
export type DiskRecord =
  | { readonly type: 'create'; readonly path: string; readonly inode: number }
  | { readonly type: 'truncate'; readonly inode: number; readonly size: number }
  | { readonly type: 'write'; readonly inode: number; readonly offset: number; readonly data: Buffer }
  | { readonly type: 'sync'; readonly path: string; readonly inode: number }
  | { readonly type: 'rename' | 'link'; readonly from: string; readonly to: string }
  | { readonly type: 'unlink' | 'mkdir'; readonly path: string }
  | { readonly type: 'mark'; readonly number: number }
  /** Everything up to this record counts as durable. */
  | { readonly type: 'settled' };

/** The size of the header before paths and data: sizes, inode, offset, type. */
const headSize = 32;

/** Adds marks to a log while programs write to it. */
export type DiskMarks = {
  readonly mark: (number: number) => void;
  /** Marks everything so far as durable. */
  readonly settle: () => void;
  readonly close: () => void;
};

/** Opens a log for marks. */
export function markLog(path: string): DiskMarks {
  const log = openSync(path, 'a');
  const add = (type: string, number: number) => {
    const head = Buffer.alloc(headSize);
    head.writeUInt32LE(headSize, 0);
    head.writeBigUInt64LE(BigInt(number), 8);
    head.write(type, 24, 'latin1');
    writeSync(log, head);
  };
  return {
    mark: (number) => add('M', number),
    settle: () => add('A', 0),
    close: () => closeSync(log),
  };
}

/** Reads all records of a log. Throws if a record is incomplete. */
export function* diskRecords(path: string): Generator<DiskRecord> {
  const log = openSync(path, 'r');
  try {
    let at = 0;
    let buffer: Buffer = Buffer.alloc(0);
    const chunk = Buffer.alloc(4 * 1_048_576);
    for (;;) {
      const size = buffer.length >= headSize ? buffer.readUInt32LE(0) : headSize;
      if (buffer.length >= size && buffer.length >= headSize) {
        yield recordIn(buffer.subarray(0, size));
        buffer = buffer.subarray(size);
        continue;
      }
      const length = readSync(log, chunk, 0, chunk.length, at);
      if (length === 0) break;
      at += length;
      buffer = Buffer.concat([buffer, chunk.subarray(0, length)]);
    }
    if (buffer.length > 0) throw new Error(`${path} ends within a record`);
  } finally {
    closeSync(log);
  }
}

function recordIn(bytes: Buffer): DiskRecord {
  const pathEnd = headSize + bytes.readUInt16LE(4);
  const otherEnd = pathEnd + bytes.readUInt16LE(6);
  const inode = Number(bytes.readBigUInt64LE(8));
  const offset = Number(bytes.readBigInt64LE(16));
  const type = bytes.toString('latin1', 24, 25);
  const path = bytes.toString('utf8', headSize, pathEnd);
  const other = bytes.toString('utf8', pathEnd, otherEnd);
  switch (type) {
    case 'C':
      return { type: 'create', path, inode };
    case 'T':
      return { type: 'truncate', inode, size: offset };
    case 'W':
      // A copy, because the buffer is much larger.
      return { type: 'write', inode, offset, data: Buffer.from(bytes.subarray(otherEnd)) };
    case 'S':
      return { type: 'sync', path, inode };
    case 'N':
      return { type: 'rename', from: path, to: other };
    case 'L':
      return { type: 'link', from: path, to: other };
    case 'U':
      return { type: 'unlink', path };
    case 'D':
      return { type: 'mkdir', path };
    case 'M':
      return { type: 'mark', number: inode };
    case 'A':
      return { type: 'settled' };
    default:
      throw new Error(`a log has no records of type ${type}`);
  }
}
