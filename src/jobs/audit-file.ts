/** Writes audit events as JSON lines to a file, which log rotation may rename, remove or truncate at any time. */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { syncPathLater } from '../base/durable-file.ts';
import { refuseUntrusted } from '../base/paths/trusted-path.ts';
import { jsonLine } from '../domain/audit/audit-log.ts';
import type { AuditSink } from './audit-feed.ts';

/** Appends to the file; creates it with mode 0600 if it is missing. */
export function auditFile(path: string): AuditSink {
  let file: FileHandle | undefined;
  const close = async () => {
    const known = file;
    file = undefined;
    await known?.close();
  };
  return {
    name: 'file',
    target: path,
    close,
    deliver: async (events) => {
      try {
        if (file !== undefined && !(await isStillAt(path, file))) await close();
        file ??= await opened(path);
        await file.appendFile(events.map(jsonLine).join(''));
        await file.datasync();
      } catch (error) {
        await close();
        throw error;
      }
    },
  };
}

async function isStillAt(path: string, file: FileHandle): Promise<boolean> {
  const [there, ours] = await Promise.all([stat(path).catch(() => undefined), file.stat()]);
  return there?.ino === ours.ino && there.dev === ours.dev;
}

/**
 * Ends a line that a crash cut off, whose event is written again. Syncs the directory so that a new file survives a
 * power cut.
 */
async function opened(path: string): Promise<FileHandle> {
  // Others could lead the vault to append to another of its files.
  await refuseUntrusted(resolve(path), { what: 'the audit file', groups: 'all' });
  const file = await open(path, 'a+', 0o600);
  try {
    await begin(file, path);
    return file;
  } catch (error) {
    // Node ends the process when it finds an open file that is used no more.
    await file.close();
    throw error;
  }
}

async function begin(file: FileHandle, path: string): Promise<void> {
  const { size } = await file.stat();
  if (size === 0) return syncDirectory(dirname(path));
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] !== 0x0a) await file.appendFile('\n');
}

/** A directory that this user may not read is made durable by its owner. */
async function syncDirectory(path: string): Promise<void> {
  try {
    await syncPathLater(path);
  } catch (error) {
    if (!/^(EACCES|EPERM)$/.test(String((error as NodeJS.ErrnoException).code))) throw error;
  }
}
