/** What the runner makes of files that fail, die, hang or have no test: each is named, and nothing gets lost. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import { tempDir } from '../harness/temp-dir.ts';
import { type FileOutcome, runBatch } from './batch.ts';
import { root } from './plan.ts';
import { describeFile, describeTotals, failed } from './report.ts';

const head = "import assert from 'node:assert/strict'; import { suite, test } from 'node:test';\n";

/** Runs files with these contents in one process. */
async function outcomesOf(t: TestContext, contents: readonly string[]): Promise<FileOutcome[]> {
  const dir = tempDir(t);
  const files = contents.map((text, index) => {
    const path = join(dir, `${index}.test.ts`);
    writeFileSync(path, head + text);
    return relative(root, path);
  });
  return runBatch({ files, engine: 'sqlite' }, join(dir, 'note'));
}

const passing = "test('passes', () => {});\n";

test('results of files that share a process are reported per file with the reason of a failure', async (t) => {
  const [good, bad] = await outcomesOf(t, [
    passing,
    `suite('all', () => { test('fails', () => assert.equal(1, 2)); test.skip('is absent'); });
     test('is skipped', { skip: 'openssl is not installed' }, () => {});`,
  ]);
  assert(good && bad);
  assert(!failed(good));
  assert.equal(good.results.length, 1);
  assert(failed(bad));
  assert.deepEqual(
    bad.results.map(({ outcome, titles }) => [outcome, titles.join(' › ')]),
    [
      ['failed', 'all › fails'],
      ['skipped', 'all › is absent'],
      ['skipped', 'is skipped'],
    ],
  );
  const text = describeFile(bad);
  assert.match(text, /is skipped # openssl is not installed/);
  assert.match(text, /Expected values to be strictly equal/);
  const totals = describeTotals({
    outcomes: [good, bad],
    flaky: [],
    faults: [],
    leftOut: [],
    wallSeconds: 1,
  });
  assert.match(totals, /✖ failing tests:\n✖ .*1\.test\.ts: all › fails\n/);
  assert.match(totals, /ℹ tests 4\nℹ pass 1\nℹ fail 1\nℹ skipped 2\nℹ duration_ms 1000$/);
});

const problems: readonly (readonly [what: string, text: string, problem: RegExp])[] = [
  ['that has no test', 'assert.ok(true);', /^has no test$/],
  ['that cannot be loaded', "import './nowhere.ts';", /ERR_MODULE_NOT_FOUND/],
  [
    'whose process is killed',
    `${passing}test('dies', () => process.kill(process.pid, 'SIGKILL'));`,
    /by SIGKILL/,
  ],
  ['that exits early', `${passing}test('exits', () => process.exit(0));`, /before its tests had/],
  [
    'that keeps something open',
    `${passing}setInterval(() => {}, 1000);`,
    /has not ended 10 s .* open: .*Timeout/,
  ],
];

for (const [what, text, problem] of problems)
  test(`a file ${what} is a failure with its reason`, async (t) => {
    const [outcome] = await outcomesOf(t, [text]);
    assert(outcome && failed(outcome));
    const said = [outcome.problem ?? '', ...outcome.results.map((result) => result.text)].join('\n');
    assert.match(said.trim(), problem);
  });
