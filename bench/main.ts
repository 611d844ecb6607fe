/**
 * `npm run bench`: runs the benchmarks against dist/vault, or only those named as arguments, prints their figures and
 * writes them to bench/results.json, so that two versions can be compared on one machine.
 */
import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { measureAcme } from './acme.ts';
import type { Figure } from './figure.ts';
import { measureScheduler } from './scheduler.ts';
import { measureStart } from './start.ts';

/** Each measures the executable at this path. */
const benchmarks: Readonly<Record<string, (program: string) => Promise<Figure[]>>> = {
  start: measureStart,
  acme: measureAcme,
  scheduler: measureScheduler,
};

const program = join(import.meta.dirname, '..', 'dist', 'vault');
const chosen = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(benchmarks);
const results: Record<string, Figure[]> = {};
for (const name of chosen) {
  const benchmark = benchmarks[name];
  if (benchmark === undefined) {
    throw new Error(`no benchmark is called ${name}; there are ${Object.keys(benchmarks).join(', ')}`);
  }
  const figures = await benchmark(program);
  results[name] = figures;
  console.log(`\n${name}`);
  for (const figure of figures) console.log(rowOf(figure));
}
const machine = { processor: cpus()[0]?.model, processors: cpus().length, node: process.version };
const path = join(import.meta.dirname, 'results.json');
writeFileSync(path, `${JSON.stringify({ machine, results }, null, 2)}\n`);

function rowOf({ name, value, unit }: Figure): string {
  return `  ${name.padEnd(32)}${value.toFixed(value < 1000 ? 1 : 0).padStart(9)} ${unit}`;
}
