/** Runs test files in a process of their own, and reads what became of each. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import '../harness/processes/child-processes.ts';
import { signal } from '../harness/processes/process-tree.ts';
import { type Batch, root } from './plan.ts';
import type { EndOfProcess, ReportLine, TestResult } from './reporter.ts';

export type FileOutcome = {
  readonly file: string;
  readonly engine: Batch['engine'];
  readonly results: readonly TestResult[];
  /** What went wrong beside its tests: the process died, or there was no test. */
  readonly problem?: string;
  readonly seconds: number;
  /** Its part of what the process used. */
  readonly processorSeconds: number;
};

/** Kills the group of processes that a shell gets as its argument, once the process that started the shell is gone. */
const guard = 'read -r line; kill -s KILL -- "-$1"';

/** A batch that takes longer hangs: the longest needs five minutes on a machine with other work on it. */
const maxMinutes = 30;

const keptOutput = 64 * 1024;

/** Runs a batch. `note` is the path of a new file; `environment` is added to that of the process. */
export async function runBatch(
  batch: Batch,
  note: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<FileOutcome[]> {
  const begun = performance.now();
  const ended = await runProcess(batch, note, environment);
  // The last line of a process that was killed may be half of one.
  const lines = existsSync(note)
    ? readFileSync(note, 'utf8')
        .split('\n')
        .filter((line) => /^\{.*\}$/.test(line))
    : [];
  const all = lines.map((line) => JSON.parse(line) as ReportLine);
  const results = all.filter((line): line is TestResult => 'outcome' in line);
  const end = all.find((line): line is EndOfProcess => 'processorSeconds' in line);
  const died =
    end === undefined ? `its process ended ${ended.how} before its tests had\n${ended.output}` : undefined;
  const seconds = (performance.now() - begun) / 1000;
  const sorted = sortByFile(batch.files, results);
  const spans = batch.files.map((file) => sum((sorted.get(file) ?? []).map((result) => result.seconds)));
  const whole = sum(spans);
  return batch.files.map((file, index) => {
    const own = sorted.get(file) ?? [];
    const share = whole === 0 ? 1 / batch.files.length : (spans[index] ?? 0) / whole;
    const failedByItself =
      ended.how !== 'with 0' && !results.some(({ outcome }) => outcome === 'failed')
        ? `its process ended ${ended.how}\n${ended.output}`
        : undefined;
    const problem =
      died ?? failedByItself ?? (own.every((one) => isFileItself(one, file)) ? 'has no test' : undefined);
    return {
      file,
      engine: batch.engine,
      results: own.filter((one) => one.outcome === 'failed' || !isFileItself(one, file)),
      ...(problem !== undefined && { problem }),
      seconds: share * seconds,
      processorSeconds: share * (end?.processorSeconds ?? 0),
    };
  });
}

type Ending = { readonly how: string; readonly output: string };

async function runProcess(
  { files, engine }: Batch,
  note: string,
  environment: NodeJS.ProcessEnv,
): Promise<Ending> {
  // Without what a runner above this one has set, or the process would report to it.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const onServer = engine === 'sqlite' ? {} : { VAULT_TEST_ENGINE: 'postgres', VAULT_TEST_POSTGRES: engine };
  const runner = spawn(
    process.execPath,
    [
      ...['--test', '--test-isolation=none', '--test-timeout=300000'],
      ...['--import', './test/harness/processes/child-processes.ts'],
      ...['--test-reporter=./test/runner/reporter.ts', `--test-reporter-destination=${note}`],
      ...files,
    ],
    {
      cwd: root,
      env: { ...inherited, ...onServer, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    },
  );
  const { pid } = runner;
  if (pid === undefined) throw new Error('failed to start node --test');
  // The processes of a group end with this one, however that ends.
  const watch = spawn('sh', ['-c', guard, 'guard', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  const end = () => {
    signal(-pid, 'SIGKILL');
    watch.kill('SIGKILL');
  };
  process.once('exit', end);
  const timer = setTimeout(() => signal(pid, 'SIGTERM'), maxMinutes * 60_000);
  let output = '';
  for (const stream of [runner.stdout, runner.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-keptOutput);
    });
  const [code, by] = await once(runner, 'close');
  clearTimeout(timer);
  end();
  process.off('exit', end);
  return { how: by === null ? `with ${code}` : `by ${by}`, output };
}

/**
 * The results by test file. Tests that the harness declares carry its path: theirs is the file of the tests before
 * them, since files run one after the other.
 */
function sortByFile(files: readonly string[], results: readonly TestResult[]): Map<string, TestResult[]> {
  const sorted = new Map<string, TestResult[]>();
  let current = files[0] ?? '';
  for (const result of results) {
    if (files.includes(result.file)) current = result.file;
    sorted.set(current, [...(sorted.get(current) ?? []), result]);
  }
  return sorted;
}

/** A file without a test is reported as a test with its path. */
function isFileItself({ titles, file }: TestResult, path: string): boolean {
  return file === path && titles.length === 1 && titles[0] === path;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
