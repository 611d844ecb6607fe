/**
 * `npm run torture` runs the chambers against dist/vault, or only those named as arguments. Amounts are options
 * (`--kills 200`, `--minutes 30`), `--seed` repeats a run, `--program` selects another executable. Prints a table of
 * the findings at the end.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Chamber, chanceFrom, type Finding } from './chamber.ts';
import { crowd } from './connection-crowd.ts';
import { faults } from './faults.ts';
import { tortureFileCuts } from './file-cuts.ts';
import { fileFaults } from './file-faults.ts';
import { fleet } from './fleet.ts';
import { tortureByKills } from './kills.ts';
import { loseFiles } from './lost-files.ts';
import { tortureNodes } from './nodes.ts';
import { openOrders } from './open-orders.ts';
import { torturePowerCuts } from './power-cuts.ts';
import { soak } from './soak.ts';
import { startFaults } from './start-faults.ts';
import { year } from './year.ts';

/** In this order. */
const chambers: Readonly<Record<string, Chamber>> = {
  kills: tortureByKills,
  'power-cuts': torturePowerCuts,
  'file-cuts': tortureFileCuts,
  'lost-files': loseFiles,
  year,
  faults,
  'start-faults': startFaults,
  'file-faults': fileFaults,
  crowd,
  'open-orders': openOrders,
  soak,
  fleet,
  nodes: tortureNodes,
};

const { names, amounts, seed, program } = read(process.argv.slice(2));
console.log(`seed ${seed}`);
const failed: string[] = [];
for (const name of names.length > 0 ? names : Object.keys(chambers)) {
  const chamber = chambers[name];
  if (chamber === undefined) {
    throw new Error(`unknown chamber ${name}; use one of ${Object.keys(chambers).join(', ')}`);
  }
  const folder = mkdtempSync(join(tmpdir(), 'vault-torture-'));
  const started = performance.now();
  try {
    console.log(`\n${name}`);
    const findings = await chamber({
      program,
      folder,
      chance: chanceFrom(`${seed}/${name}`),
      amount: (amount) => amounts.get(amount),
      say: (line) => console.log(`  ${line}`),
    });
    const seconds = { name: 'seconds', value: (performance.now() - started) / 1000 };
    for (const finding of [...findings, seconds]) console.log(rowOf(finding));
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    failed.push(name);
    console.error(error);
    console.error(`  failed; the files are in ${folder}; repeat with --seed ${seed}`);
  }
}
if (failed.length > 0) console.error(`\nbroken: ${failed.join(', ')}`);
// At its own end Node would wait for handles of children that were killed, and now and then never stop.
process.exit(failed.length > 0 ? 1 : 0);

type Words = { names: string[]; amounts: Map<string, number>; seed: string; program: string };

function read(args: readonly string[]): Words {
  const names: string[] = [];
  const amounts = new Map<string, number>();
  let seed = randomBytes(4).toString('hex');
  let program = join(import.meta.dirname, '..', '..', 'dist', 'vault');
  for (let at = 0; at < args.length; at++) {
    const [option = '', inline] = (args[at] ?? '').split('=');
    if (!option.startsWith('--')) names.push(option);
    else {
      const value = inline ?? args[++at] ?? '';
      if (option === '--seed') seed = value;
      else if (option === '--program') program = value;
      else if (Number.isFinite(Number.parseFloat(value))) amounts.set(option.slice(2), Number(value));
      else throw new Error(`${option} needs a number`);
    }
  }
  return { names, amounts, seed, program };
}

function rowOf({ name, value, unit = '' }: Finding): string {
  return `  ${name.padEnd(48)}${(Number.isInteger(value) ? String(value) : value.toFixed(1)).padStart(10)} ${unit}`;
}
