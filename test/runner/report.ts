/** What a run prints: a line for each file, and at the end figures, then what failed, then the totals. */
import type { FileOutcome } from './batch.ts';
import type { TestResult } from './reporter.ts';

export type Totals = {
  /** The last outcome of each file. */
  readonly outcomes: readonly FileOutcome[];
  /** The first outcome of files that passed only when repeated. */
  readonly flaky: readonly FileOutcome[];
  /** Why the run failed, beside files that did. */
  readonly faults: readonly string[];
  readonly leftOut: readonly string[];
  readonly wallSeconds: number;
};

export function failed({ problem, results }: FileOutcome): boolean {
  return problem !== undefined || results.some(({ outcome }) => outcome === 'failed');
}

/** One line for a file, one for each test that was skipped, and what failed. */
export function describeFile(outcome: FileOutcome): string {
  const { results, seconds, processorSeconds } = outcome;
  const sign = failed(outcome) ? '✖' : '✔';
  const skips = results.filter(({ outcome }) => outcome === 'skipped');
  return [
    `${sign} ${nameOf(outcome)} · ${results.length} tests · ${seconds.toFixed(1)} s (${processorSeconds.toFixed(1)} s of processor)`,
    ...skips.map((test) => `  ﹣ ${titleOf(test)} # ${test.text}`),
    ...(failed(outcome) ? describeFailures(outcome) : []),
  ].join('\n');
}

/** Figures first, failures after them, totals last: nobody has to search. */
export function describeTotals({ outcomes, flaky, faults, leftOut, wallSeconds }: Totals): string {
  const processorSeconds = outcomes.reduce((sum, outcome) => sum + outcome.processorSeconds, 0);
  const red = outcomes.filter(failed);
  const dearest = outcomes.toSorted((a, b) => b.processorSeconds - a.processorSeconds).slice(0, 10);
  const count = (kind: TestResult['outcome']) =>
    outcomes.reduce((sum, { results }) => sum + results.filter(({ outcome }) => outcome === kind).length, 0);
  const [passed, skipped] = [count('passed'), count('skipped')];
  const failures = count('failed') + outcomes.filter(({ problem }) => problem !== undefined).length;
  return [
    '',
    'Files that use most processor time:',
    ...dearest.map((one) => `  ${one.processorSeconds.toFixed(0).padStart(4)} s  ${nameOf(one)}`),
    ...(leftOut.length === 0 ? [] : ['', 'Not run:', ...leftOut.map((line) => `  ${line}`)]),
    ...(flaky.length === 0 ? [] : ['', 'Passed only when repeated:', ...flaky.flatMap(describeFailures)]),
    ...(red.length === 0 ? [] : ['', '✖ failing tests:', ...red.flatMap(describeFailures)]),
    ...faults.map((fault) => `✖ ${fault}`),
    '',
    `${wallSeconds.toFixed(0)} s, ${processorSeconds.toFixed(0)} s of processor time`,
    `ℹ tests ${passed + skipped + failures}`,
    `ℹ pass ${passed}`,
    `ℹ fail ${failures}`,
    `ℹ skipped ${skipped}`,
    `ℹ duration_ms ${(wallSeconds * 1000).toFixed(0)}`,
  ].join('\n');
}

function describeFailures(outcome: FileOutcome): string[] {
  const { problem, results } = outcome;
  return [
    ...(problem === undefined ? [] : [`✖ ${nameOf(outcome)}: ${indented(problem)}`]),
    ...results
      .filter((test) => test.outcome === 'failed')
      .map((test) => `✖ ${nameOf(outcome)}: ${titleOf(test)}\n    ${indented(test.text)}`),
  ];
}

function nameOf({ file, engine }: FileOutcome): string {
  return engine === 'sqlite' ? file : `${file} on PostgreSQL (${engine})`;
}

function titleOf({ titles }: TestResult): string {
  return titles.join(' › ');
}

function indented(text: string): string {
  return text.trimEnd().replaceAll('\n', '\n    ');
}
