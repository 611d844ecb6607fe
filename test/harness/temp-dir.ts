/** Temporary directories of a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A new empty directory (mode 0700), which is removed when the test ends. */
export function tempDir(t: Pick<TestContext, 'after'>): string {
  const path = mkdtempSync(join(tmpdir(), 'vault-test-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
