/**
 * `npm run bench` runs the benchmarks against dist/vault, or only those named as arguments. It prints the figures as
 * Markdown and writes them to bench/results.json, to compare two versions on one machine. `--quick` takes four minutes
 * and gives rough figures; `--docs` also writes the figures to docs/explanation/benchmarks.md. `--against PATH`
 * measures another executable by turns and prints both figures and their ratio.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import '../test/harness/processes/child-processes.ts';
import { measureAcme } from './acme.ts';
import { measureAcmeOrders } from './acme-orders.ts';
import { compared, type Figure, figureTable, markdownOf, type Table } from './figure.ts';
import { measureGrowth } from './growth.ts';
import { measureHandshakes } from './handshakes.ts';
import { measureLabels } from './labels.ts';
import { loadProgram } from './load.ts';
import { measureLoopTime } from './loop-time.ts';
import { measureNodes } from './nodes.ts';
import { fullPace, type Pace, quickPace } from './pace.ts';
import { measurePrivateCa } from './private-ca.ts';
import { measureRequests, measureTwoCores } from './requests.ts';
import { measureScheduler } from './scheduler.ts';
import { canPin } from './server-process.ts';
import { measureSlowDisk } from './slow-disk.ts';
import { measureStart } from './start.ts';
import { byTurns } from './turns.ts';
import { measureVersionWaits } from './version-waits.ts';

/** Each measures the executable at this path. */
type Benchmark = (program: string, pace: Pace) => Promise<Table[]>;

const benchmarks: Readonly<Record<string, Benchmark>> = {
  requests: measureRequests,
  'two-cores': measureTwoCores,
  'loop-time': measureLoopTime,
  nodes: measureNodes,
  'slow-disk': measureSlowDisk,
  handshakes: measureHandshakes,
  growth: measureGrowth,
  labels: measureLabels,
  start: figures('Start', measureStart),
  'private-ca': measurePrivateCa,
  acme: figures('Certificates from a CA', measureAcme),
  'acme-orders': measureAcmeOrders,
  'version-waits': measureVersionWaits,
  scheduler: figures('Scheduler', measureScheduler),
};

/** The benchmarks that `--quick` skips. */
const slow = ['acme'];

/** The benchmarks that measure this version whatever the executable. */
const alone = ['acme', 'scheduler'];

const { values, positionals } = parseArgs({
  options: { quick: { type: 'boolean' }, docs: { type: 'boolean' }, against: { type: 'string' } },
  allowPositionals: true,
});
const program = join(import.meta.dirname, '..', 'dist', 'vault');
const usual = Object.keys(benchmarks).filter((name) => !(values.quick && slow.includes(name)));
const machine = {
  processor: cpus()[0]?.model,
  processors: cpus().length,
  node: process.version,
  load: loadProgram,
  pinned: canPin,
};
const against = values.against === undefined ? undefined : executable(resolve(values.against));
const results: Record<string, Table[]> = {};
const others: Record<string, Table[]> = {};
for (const name of positionals.length > 0 ? positionals : usual) {
  const benchmark = benchmarks[name];
  if (benchmark === undefined) {
    throw new Error(`unknown benchmark ${name}; use one of ${Object.keys(benchmarks).join(', ')}`);
  }
  const programs = against === undefined || alone.includes(name) ? [program] : [program, against];
  const pace = values.quick ? quickPace : fullPace;
  const [tables = [], other] = await byTurns(
    programs.map((each) => (turn) => benchmark(each, { ...pace, turn })),
  );
  results[name] = tables;
  if (other !== undefined) others[name] = other;
  const printed = other === undefined ? tables : compared(tables, other);
  for (const table of printed) console.log(`\n${markdownOf(table)}`);
}
const path = join(import.meta.dirname, 'results.json');
writeFileSync(
  path,
  `${JSON.stringify({ machine, results, ...(against !== undefined && { against, others }) }, null, 2)}\n`,
);
if (values.docs) writeDocs();

/** The path, unless it is not a vault. */
function executable(path: string): string {
  const { status, error, stdout = '' } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${path} is not a vault: ${error?.message ?? stdout}`);
  return path;
}

/**
 * Writes the tables of each benchmark to docs/explanation/benchmarks.md, between `<!-- name -->` and `<!-- /name -->`.
 * All of them together also name the machine at the top; a few name it below their tables if it is another one.
 */
function writeDocs(): void {
  const docs = join(import.meta.dirname, '..', 'docs', 'explanation', 'benchmarks.md');
  const { processor, processors, node, load, pinned } = machine;
  const kept = pinned ? 'server and load each on their own core' : 'not pinned to cores';
  const here = `${processor}, ${processors} cores, Node ${node}; load by ${load}, ${kept}.`;
  let text = readFileSync(docs, 'utf8');
  const isWhole = positionals.length === 0;
  const isElsewhere = !isWhole && !text.includes(`<!-- machine -->\n${here}\n`);
  const texts = {
    ...(isWhole && { machine: here }),
    ...Object.fromEntries(
      Object.entries(results).map(([name, tables]) => [
        name,
        [...tables.map(markdownOf), ...(isElsewhere ? [`Measured on ${here}`] : [])].join('\n\n'),
      ]),
    ),
  };
  for (const [name, figures] of Object.entries(texts)) {
    const place = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`);
    text = text.replace(place, (_, begin: string, end: string) => `${begin}${figures}\n${end}`);
  }
  writeFileSync(docs, text);
}

function figures(title: string, measure: (program: string, pace: Pace) => Promise<Figure[]>): Benchmark {
  return async (path, pace) => [figureTable(title, await measure(path, pace))];
}
