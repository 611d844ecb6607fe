/** Audit events as lines of JSON in a file that a collector reads; it may be renamed, removed or emptied at any time. */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncIfReadable } from '../base/durable-file.ts';
import { jsonLine } from '../domain/audit/audit-log.ts';
import type { AuditSink } from './audit-feed.ts';

/** Appends to the file, which is made where it is missing, for its owner alone. */
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

/** What a crash has left of a line ends here; that event comes again as a whole. A new file is there after a power cut too. */
async function opened(path: string): Promise<FileHandle> {
  const file = await open(path, 'a+', 0o600);
  const { size } = await file.stat();
  if (size === 0) {
    syncIfReadable(dirname(path));
    return file;
  }
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] !== 0x0a) await file.appendFile('\n');
  return file;
}
