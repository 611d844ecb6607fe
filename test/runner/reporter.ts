/**
 * The reporter of each test process (test/runner/batch.ts): one line of JSON for each test, and a last one, without
 * which the process did not end by itself.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

export type TestResult = {
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** Where the test is declared: the test file, or a file of the harness. */
  readonly file: string;
  /** The titles of its suites and its own, outermost first. */
  readonly titles: readonly string[];
  readonly seconds: number;
  /** Why it was skipped, or how it failed. */
  readonly text: string;
};

export type EndOfProcess = {
  /** Seconds of processor time that it and its child processes used; 0 for those that still run. */
  readonly processorSeconds: number;
};

export type ReportLine = TestResult | EndOfProcess;

// biome-ignore lint/style/noDefaultExport: that is what `node --test` imports.
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const titles: string[] = [];
  for await (const { type, data } of events) {
    if (type === 'test:start') titles[data.nesting] = data.name;
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { file = '', nesting, name, details, skip, todo } = data;
    // Suites say nothing that their tests do not say, unless a hook failed.
    if (type === 'test:pass' && details.type === 'suite') continue;
    if (type === 'test:fail' && causeOf(data.details.error) === 'subtestsFailed') continue;
    const isSkipped = skip !== undefined && skip !== false;
    const outcome = type === 'test:fail' && !todo ? 'failed' : isSkipped || todo ? 'skipped' : 'passed';
    const reason = String((isSkipped ? skip : todo) ?? '');
    yield line({
      outcome,
      file: relative(process.cwd(), file),
      titles: [...titles.slice(0, nesting), name],
      seconds: details.duration_ms / 1000,
      text: type === 'test:fail' ? described(data.details.error) : reason,
    });
  }
  yield line({ processorSeconds: processorSeconds() });
}

function line(value: ReportLine): string {
  return `${JSON.stringify(value)}\n`;
}

function causeOf(error: Error & { failureType?: unknown }): unknown {
  return error.failureType;
}

function described(error: Error): string {
  const { cause } = error;
  return inspect(cause instanceof Error ? cause : (cause ?? error), { depth: 5 });
}

/** Linux tells what child processes used once they have ended. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + secondsOfChildren();
}

function secondsOfChildren(): number {
  if (process.platform !== 'linux') return 0;
  // In hundredths of a second, after the name in parentheses: fields 16 and 17 of proc(5).
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[13]) + Number(fields[14])) / 100;
}
