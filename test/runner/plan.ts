/** Which test files run, and which share a process. */
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { needsPostgres, type PostgresKind } from '../harness/postgres/binaries.ts';

export const root = join(import.meta.dirname, '..', '..');

/** Files that run in one process, one after the other. */
export type Batch = {
  readonly files: readonly string[];
  /** Where the vaults are: in a file, or on a server of this kind. */
  readonly engine: 'sqlite' | PostgresKind;
};

export type Plan = {
  /** In the order in which they begin. */
  readonly batches: readonly Batch[];
  /** What is left out, with the reason, for the reader. */
  readonly leftOut: readonly string[];
};

export type PlanOptions = {
  /** Files and folders; all if empty. */
  readonly paths: readonly string[];
  /** Only what starts no program and is not long. */
  readonly isFast: boolean;
  /** Every table as a whole, and every suite on PostgreSQL. */
  readonly isWhole: boolean;
};

/** What starts programs, or looks for them. */
const starters = /from '(?:node:child_process|playwright-core|[./]*(?:[a-z]+\/)*missing-program\.ts)'/;

/** What gives vaults their engine: a test with a vault has it among what it imports. */
const engineOfVaults = 'test/harness/database/tested-engine.ts';

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
  'test/http/routes/access/session-routes-flood.test.ts',
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

/** Tables and floods that take seconds, and are rarely what a change breaks first: the fast run leaves them out. */
const takesSeconds: readonly string[] = [
  'test/cli/runtime/master-keys.test.ts',
  'test/cli/settings/settings-refusals.test.ts',
  'test/db/sqlite/sqlite-dialect.test.ts',
  'test/domain/audit/audit-verification.test.ts',
  'test/domain/doctor/node-findings.test.ts',
  'test/http/acme-server/signed-calls-hostile.test.ts',
  'test/http/auth/access-limits.test.ts',
  'test/http/database-attacker.test.ts',
  'test/http/database-attacker-rollback.test.ts',
  'test/http/request/security-headers.test.ts',
  'test/http/routes/list-reply.test.ts',
  'test/http/server/dispatch-reader-budget.test.ts',
  'test/http/server/pipelining-unwanted-body.test.ts',
];

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

/** Suites that run on PostgreSQL as well: a third of their files in each tree if `isSliced`. */
const onPostgres: readonly {
  readonly kind: PostgresKind;
  readonly paths: readonly string[];
  readonly isSliced: boolean;
}[] = [
  { kind: 'embedded', paths: ['test/db/*.test.ts', 'test/db/{audit,tables}/*.test.ts'], isSliced: false },
  { kind: 'embedded', paths: ['test/jobs/**/*.test.ts'], isSliced: false },
  { kind: 'embedded', paths: ['test/domain/**/*.test.ts'], isSliced: true },
  { kind: 'embedded', paths: ['test/http/**/*.test.ts'], isSliced: true },
  // Another version of the server, where what is asked of it is written.
  { kind: 'debian', paths: ['test/db/*.test.ts', 'test/db/{audit,tables}/*.test.ts'], isSliced: false },
];

/**
 * Walks over each step of something long, thousands of hostile requests, TLS clients of many kinds, and moves, which
 * have both engines anyway: only the whole run has them on PostgreSQL.
 */
const takesMinutes =
  /-(?:death|fleet|hostile|kill|kills|shutdown)\.test\.ts$|\/private-ca-routes(?:-company)?\.test\.ts$|\/database-copy\//;

/** Tests of what only a database in a file has show that a run was none on files. */
const hasTestOfFiles = /\bofFiles\(/;

/** Starting a process and loading the product costs more than most files do. */
const maxTogether = { commands: 8, others: 20, postgres: 12, fast: 45 };

/** Plans a run. Throws if a program that VAULT_TEST_ALL=1 asks for is missing. */
export function plan({ paths, isFast, isWhole }: PlanOptions): Plan {
  const imports = new Imports();
  const isNamed = (file: string) =>
    paths.length === 0 ||
    paths.some((path) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));
  const found = globSync('test/**/*.test.ts', { cwd: root }).toSorted().filter(isNamed);
  const isAlone = (file: string) => processFolders.test(file) || alone.includes(file);
  const isQuick = (file: string) =>
    !imports.some(file, (text) => starters.test(text)) &&
    (!alone.includes(file) || quickAlone.includes(file)) &&
    !takesSeconds.includes(file);
  const wanted = isFast ? found.filter(isQuick) : found;
  const together = wanted.filter((file) => (isFast ? !quickAlone.includes(file) : !isAlone(file)));
  const shared = [
    ...inGroups(
      together.filter((file) => commandFolders.test(file)),
      maxTogether.commands,
    ),
    ...inGroups(
      together.filter((file) => !commandFolders.test(file)),
      isFast ? maxTogether.fast : maxTogether.others,
    ),
  ].map((files): Batch => ({ files, engine: 'sqlite' }));
  const single = wanted
    .filter((file) => !together.includes(file))
    .map((file): Batch => ({ files: [file], engine: 'sqlite' }));
  if (isFast) return { batches: [...single, ...shared], leftOut: [] };
  const { batches: others, leftOut } = planPostgres(isNamed, imports, isWhole);
  const rank = ({ files: [first = ''] }: Batch) => {
    const index = longestFirst.findIndex((pattern) => pattern.test(first));
    return index === -1 ? longestFirst.length : index;
  };
  return { batches: [...others, ...single.toSorted((a, b) => rank(a) - rank(b)), ...shared], leftOut };
}

function planPostgres(isNamed: (file: string) => boolean, imports: Imports, isWhole: boolean): Plan {
  const tree = treeOfCommit();
  const batches: Batch[] = [];
  const leftOut: string[] = [];
  for (const { kind, paths, isSliced } of onPostgres) {
    const suite = `${paths.join(' ')} on PostgreSQL (${kind})`;
    const { skip } = needsPostgres(kind);
    const found = globSync([...paths], { cwd: root })
      .toSorted()
      .filter((file) => isNamed(file) && imports.some(file, (_, path) => path === engineOfVaults));
    if (found.length === 0) continue;
    if (skip !== undefined) {
      leftOut.push(`${suite}: ${skip}`);
      continue;
    }
    const short = found.filter((file) => isWhole || !takesMinutes.test(file));
    const files = short.filter((file) => !isSliced || isWhole || isInSlice(file, tree));
    if (files.length < found.length)
      leftOut.push(
        `${suite}: ${found.length - short.length} files that take minutes, and ${short.length - files.length} that run in other commits; npm run test:whole runs them`,
      );
    const most = Math.min(maxTogether.postgres, Math.max(1, Math.ceil(files.length / 2)));
    batches.push(...inGroups(files, most).map((group): Batch => ({ files: group, engine: kind })));
  }
  return { batches, leftOut };
}

/** A third of the files, another one in another tree: over commits all of them run. */
function isInSlice(file: string, tree: string): boolean {
  if (hasTestOfFiles.test(readFileSync(join(root, file), 'utf8'))) return true;
  return Number.parseInt(hash('sha256', `${tree} ${file}`).slice(0, 4), 16) % 3 === 0;
}

/** Names the content of the last commit, in hexadecimal digits; empty outside a repository. */
export function treeOfCommit(): string {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: root, encoding: 'utf8' });
  return stdout?.trim() ?? '';
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

  /** Whether `matches` is true of a file, or of one that it imports. */
  some(file: string, matches: (text: string, path: string) => boolean, seen = new Set<string>()): boolean {
    if (seen.has(file)) return false;
    seen.add(file);
    const text = this.#texts.get(file) ?? readFileSync(join(root, file), 'utf8');
    this.#texts.set(file, text);
    // The engine starts a server only on PostgreSQL, where all files share processes anyway.
    if (matches(text, file)) return true;
    if (file === engineOfVaults) return false;
    const imports = [...text.matchAll(/(?:from|import\() ?'(\.[^']+\.ts)'/g)].map(([, name = '']) =>
      join(file, '..', name),
    );
    return imports.some((one) => one.startsWith('test/') && this.some(one, matches, seen));
  }
}
