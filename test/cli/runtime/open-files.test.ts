/** The connections that the limit of open files leaves to waiting requests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { test } from 'node:test';

const limits = '/proc/self/limits';
const script =
  "import { connectionsBeside } from './src/cli/runtime/open-files.ts'; console.log(connectionsBeside(2000));";

/** What the function returns in a process with this limit. */
function within(limit: number): string {
  const command = `ulimit -n ${limit}; exec "$0" --input-type=module --eval "$1"`;
  const cwd = new URL('../../..', import.meta.url);
  return execFileSync('sh', ['-c', command, process.execPath, script], { cwd, encoding: 'utf8' }).trim();
}

test(
  'the limit of open files leaves places to waiting requests beyond all other connections and files',
  existsSync(limits) ? {} : { skip: `this system has no ${limits}` },
  () => {
    assert.equal(within(4096), '1596');
    assert.equal(within(1024), '0');
  },
);
