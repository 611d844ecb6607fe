/** Temporary directories of a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new empty directory (mode 0700), which is removed when the test ends. */
export function tempDir(t: { after(end: () => void): unknown }): string {
  const path = mkdtempSync(join(tmpdir(), 'vault-test-'));
  // What a thread of this process is writing arrives meanwhile, and nothing after it: the event loop waits.
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}
