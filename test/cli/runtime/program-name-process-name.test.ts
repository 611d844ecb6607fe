/** The name under which ps, top and pgrep find the vault. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const linux = existsSync('/proc/self/comm') ? {} : { skip: '/proc/self/comm exists on Linux only' };

test(
  'the server is one process called vault that keeps its arguments, and ignores --workers with a warning',
  linux,
  async (t) => {
    const data = join(tempDir(t), 'data');
    const { pid, log, end } = await serve(t, data, { args: ['--workers', '4'] });
    assert.equal(readFileSync(`/proc/${pid}/comm`, 'utf8'), 'vault\n');
    const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    assert.ok(line.includes('serve') && line.includes(data));
    assert.equal(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), '');
    assert.equal((await end()).code, 0);
    const warnings = log().match(/^.*"level":"warn".*$/gm) ?? [];
    assert.equal(warnings.length, 1, log());
    assert.match(
      String(warnings),
      /"setting":"--workers","msg":"setting ignored: the vault serves in one process; remove it"/,
    );
  },
);
