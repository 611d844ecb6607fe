/** Which test files run, and which share a process. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..', '..');

/** Files that run in one process, one after the other. */
export type Batch = {
  readonly files: readonly string[];
};

export type PlanOptions = {
  /** Files and folders; all if empty. */
  readonly paths: readonly string[];
  /** Only what starts no program and is not long. */
  readonly isFast: boolean;
};

/** What starts programs, or looks for them. */
const starters = /from '(?:node:child_process|playwright-core|[./]*(?:harness\/)?missing-program\.ts)'/;

/** Tests of the product as processes, which are long and wait for others. */
const processFolders = /^test\/(?:docs|executable|installer|torture)\//;

/** Where most of a test is commands, which take longer than what other tests do. */
const commandFolders = /^test\/cli\//;

/** Need a process of their own besides: they change what all of it shares, measure it, or take minutes. */
const alone: readonly string[] = [
  'test/architecture-patterns.test.ts',
  'test/architecture-security.test.ts',
  'test/architecture.test.ts',
  'test/base/detached.test.ts',
  'test/db/sqlite/thread-connection.test.ts',
  'test/http/routes/session-routes-flood.test.ts',
  'test/http/server/connection-limits.test.ts',
  'test/http/server/connection-turns.test.ts',
  'test/http/server/dispatch.test.ts',
  'test/http/server/pipelining.test.ts',
  'test/http/surface-fuzz.test.ts',
  'test/net/bundle-process.test.ts',
  'test/reader-time.test.ts',
  'test/words.test.ts',
];

/** The fast run has these of them. */
const quickAlone: readonly string[] = ['test/base/detached.test.ts', 'test/words.test.ts'];

/** What takes longest begins first, or it would run by itself at the end. */
const longestFirst: readonly RegExp[] = [
  /^test\/executable\/acme-scheduler/,
  /^test\/torture\//,
  /^test\/installer\/(?:rules|kills|faults|set-key|interruptions|shells)/,
  /^test\/executable\//,
  /^test\/installer\//,
  /^test\/docs\//,
  /^test\/architecture/,
];

/** Starting a process and loading the product costs more than most files do. */
const mostTogether = { commands: 8, others: 20 };

/** The batches of a run, in the order in which they begin. */
export function plan({ paths, isFast }: PlanOptions): Batch[] {
  const isNamed = (file: string) =>
    paths.length === 0 ||
    paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));
  const found = globSync('test/**/*.test.ts', { cwd: root }).toSorted().filter(isNamed);
  const imports = new Imports();
  const isQuick = (file: string) =>
    !imports.some(file, (text) => starters.test(text)) &&
    (!alone.includes(file) || quickAlone.includes(file));
  const isAlone = (file: string) => processFolders.test(file) || alone.includes(file);
  const wanted = isFast ? found.filter(isQuick) : found;
  const together = wanted.filter((file) => (isFast ? !quickAlone.includes(file) : !isAlone(file)));
  const rank = (file: string) => {
    const index = longestFirst.findIndex((pattern) => pattern.test(file));
    return index === -1 ? longestFirst.length : index;
  };
  const single = wanted.filter((file) => !together.includes(file)).toSorted((a, b) => rank(a) - rank(b));
  const [commands, others] = [true, false].map((are) =>
    together.filter((file) => commandFolders.test(file) === are),
  );
  return [
    ...single.map((file) => [file]),
    ...inGroups(commands ?? [], mostTogether.commands),
    ...inGroups(others ?? [], mostTogether.others),
  ].map((files) => ({ files }));
}

/** Groups of nearly the same size. */
function inGroups(files: readonly string[], most: number): string[][] {
  const count = Math.ceil(files.length / most);
  return Array.from({ length: count }, (_, index) =>
    files.slice(Math.floor((index * files.length) / count), Math.floor(((index + 1) * files.length) / count)),
  );
}

/** What test files import from test/, directly or not. */
class Imports {
  readonly #texts = new Map<string, string>();

  /** Whether `matches` is true of the text of a file, or of one that it imports. */
  some(file: string, matches: (text: string) => boolean, seen = new Set<string>()): boolean {
    if (seen.has(file)) return false;
    seen.add(file);
    const text = this.#texts.get(file) ?? readFileSync(join(root, file), 'utf8');
    this.#texts.set(file, text);
    if (matches(text)) return true;
    const imports = [...text.matchAll(/(?:from|import\() ?'(\.[^']+\.ts)'/g)].map(([, name = '']) =>
      join(file, '..', name),
    );
    return imports.some((one) => one.startsWith('test/') && this.some(one, matches, seen));
  }
}
