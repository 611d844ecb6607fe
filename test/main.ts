/**
 * `npm test`, `npm run test:fast` and `npm run test:whole`. Files that start no program share processes; those that do
 * have their own. What fails runs once more, alone, after everything else; what passes then is listed as flaky.
 * Arguments that are no options name files or folders.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type FileOutcome, runBatch } from './runner/batch.ts';
import { type Batch, plan, treeOfCommit } from './runner/plan.ts';
import { describeFile, describeTotals, failed } from './runner/report.ts';
import type { TestResult } from './runner/reporter.ts';

const { values, positionals } = parseArgs({
  options: { fast: { type: 'boolean', default: false }, whole: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const isWhole = values.whole || process.env.VAULT_TEST_WHOLE === '1';
// One tree has one verdict: only the whole run draws new seeds, and has no slices.
const drawn = isWhole ? randomBytes(4).toString('hex') : treeOfCommit().slice(0, 8) || '0';
const number = String(Number.parseInt(drawn.slice(-7), 16));
const { VAULT_FUZZ_SEED = number, VAULT_TORTURE_SEED = drawn, VAULT_TEST_SLICE = number } = process.env;
const seeds = { VAULT_FUZZ_SEED, VAULT_TORTURE_SEED };
const environment = isWhole ? { ...seeds, VAULT_TEST_WHOLE: '1' } : { ...seeds, VAULT_TEST_SLICE };
console.log(
  Object.entries(environment)
    .map((pair) => pair.join('='))
    .join(' '),
);
const { batches, leftOut } = plan({ paths: positionals, isFast: values.fast, isWhole });
const begun = performance.now();
const notes = mkdtempSync(join(tmpdir(), 'vault-test-run-'));
let noteCount = 0;
const waiting = [...batches];
const running = new Set<Batch>();
const outcomes: FileOutcome[] = [];
const flaky: FileOutcome[] = [];

/** What the run has come to, also when it is interrupted. */
function conclude(): void {
  rmSync(notes, { recursive: true, force: true });
  const unfinished = [...running, ...waiting].flatMap(({ files }) => files);
  const servers = outcomes.filter(({ engine }) => engine !== 'sqlite').flatMap(({ results }) => results);
  const faults = [
    ...(unfinished.length === 0 ? [] : [`interrupted before the end of ${unfinished.join(', ')}`]),
    ...(outcomes.length === 0 ? ['no test file was found'] : []),
    ...(positionals.length === 0 && servers.length > 0 && !servers.some(isOfFiles)
      ? ['no test was left to databases in files: was this a run on PostgreSQL?']
      : []),
  ];
  const wallSeconds = (performance.now() - begun) / 1000;
  console.log(describeTotals({ outcomes, flaky, faults, leftOut, wallSeconds }));
  if (faults.length > 0 || outcomes.some(failed)) process.exitCode = 1;
}
process.once('exit', conclude);

/** Tests with a reason like this are skipped on a server. */
function isOfFiles({ outcome, text }: TestResult): boolean {
  return outcome === 'skipped' && text.startsWith('only of a database in a file');
}

async function run(batch: Batch): Promise<FileOutcome[]> {
  running.add(batch);
  const done = await runBatch(batch, join(notes, `${noteCount++}`), environment);
  running.delete(batch);
  for (const outcome of done) console.log(describeFile(outcome));
  return done;
}

/** The files of a batch that have to be repeated: all of them where a test of the harness hides whose it is. */
function toRepeat(batch: Batch, done: readonly FileOutcome[]): Batch[] {
  const red = done.filter(failed);
  const isHidden = red.some(({ results }) =>
    results.some(({ outcome, file }) => outcome === 'failed' && !batch.files.includes(file)),
  );
  return (isHidden ? done : red).map(({ file }) => ({ files: [file], engine: batch.engine }));
}

const doubtful: Batch[] = [];
async function work(): Promise<void> {
  for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
    const done = await run(batch);
    outcomes.push(...done);
    doubtful.push(...toRepeat(batch, done));
  }
}
await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));

waiting.push(...doubtful);
if (waiting.length > 0) console.log('\nRepeating what failed.');
for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
  const [again] = await run(batch);
  const index = outcomes.findIndex(({ file, engine }) => file === again?.file && engine === again.engine);
  const [first] = outcomes.slice(index, index + 1);
  if (again === undefined || first === undefined) throw new Error(`${batch.files.join()} was not repeated`);
  if (failed(first) && !failed(again)) flaky.push(first);
  outcomes[index] = again;
}
