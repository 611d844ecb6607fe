/**
 * `npm run test:fast`: the tests that start no other program, be it the executable, a browser or a program of the system. Which
 * these are follows from what they import. Arguments are further options for `node --test`.
 */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** What starts programs, or looks for them. */
const starters = /from '(?:node:child_process|playwright-core|[./]*(?:harness\/)?missing-program\.ts)'/;

/** Long by their nature: proofs, floods, fuzz and whole tables of damage. `npm test` and `npm run check` run them. */
const slow: readonly string[] = [
  'test/architecture-patterns.test.ts',
  'test/executable/vault-files.test.ts',
  'test/http/server/connection-limits.test.ts',
  'test/http/server/connection-turns.test.ts',
  'test/http/server/dispatch.test.ts',
  'test/http/server/pipelining.test.ts',
  'test/http/routes/session-routes-flood.test.ts',
  'test/http/surface-fuzz.test.ts',
  'test/reader-time.test.ts',
  'test/db/sqlite/thread-connection.test.ts',
];

const root = join(import.meta.dirname, '..');
const startsPrograms = new Map<string, boolean>();

/** Whether the file, or what it imports from test/, starts a program. */
function starts(path: string): boolean {
  const known = startsPrograms.get(path);
  if (known !== undefined) return known;
  startsPrograms.set(path, false);
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(/(?:from|import\() ?'(\.[^']+\.ts)'/g)].map(([, name = '']) =>
    join(path, '..', name),
  );
  const result =
    starters.test(text) || imports.some((one) => one.startsWith(join(root, 'test')) && starts(one));
  startsPrograms.set(path, result);
  return result;
}

const files = globSync('test/**/*.test.ts', { cwd: root })
  .filter((path) => !starts(join(root, path)) && !slow.includes(path))
  .map((path) => relative(process.cwd(), join(root, path)));
const options = [
  ...['--test', '--test-concurrency=2', '--test-timeout=60000'],
  ...process.argv.slice(2),
];
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
process.exitCode = status ?? 1;
