/**
 * The rules of the house are in biome.jsonc, lint/ and .dependency-cruiser.mjs. Here each is tried on a source that
 * breaks it and on one that only seems to, and each exception must still be needed. At the end is what no tool can say.
 */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path/posix';
import { after, before, suite, test } from 'node:test';
import { tempDir } from './harness/temp-dir.ts';
import {
  type BiomeConfig,
  biomeConfig,
  type Finding,
  messageOf,
  runBiome,
  runDependencyCruiser,
  type Sources,
  writeProject,
} from './rule-runs.ts';

process.chdir(join(import.meta.dirname, '..'));

/** The rule, or the plugin, and sources of which each breaks it once. */
const brokenForBiome: Readonly<Record<string, readonly string[]>> = {
  './lint/clock.grit': [
    'export const at = Date.now();',
    'export const clock = { now: Date.now };',
    'export const at = new Date();',
    'export const { now } = Date;',
    "export const now = Date['now'];",
    'export const signal = AbortSignal.timeout(10);',
  ],
  './lint/randomness.grit': [
    'export const dice = Math.random();',
    "import { createHash, randomBytes as bytes } from 'node:crypto';\nexport const a = [createHash, bytes];",
    "import { webcrypto } from 'node:crypto';\nexport const a = webcrypto.subtle;",
    "import * as anything from 'node:crypto';\nexport const a = anything.randomBytes;",
    "import anything from 'node:crypto';\nexport const a = anything;",
    "export const a = await import('node:crypto');",
  ],
  './lint/network.grit': [
    "import { request } from 'node:https';\nexport const a = request;",
    "import { connect, isIP } from 'node:net';\nexport const a = [connect, isIP];",
    "import 'node:dns';",
    "import * as tls from 'node:tls';\nexport const a = tls.connect;",
    "export const a = await import('node:http2');",
    "import { fetch as get } from 'undici';\nexport const a = get;",
  ],
  './lint/environment.grit': [
    "import { hostname } from 'node:os';\nexport const a = hostname;",
    "import { setTimeout as delay } from 'node:timers/promises';\nexport const a = delay;",
    "import clock from 'node:perf_hooks';\nexport const a = clock;",
    "export const a = await import('node:child_process');",
  ],
  noRestrictedGlobals: [
    'export const home = process.env.HOME;',
    "export const home = process['env'];",
    'export const { argv } = process;',
    'export const everything = { process };',
    "console.log('hello');",
    'export const world = globalThis.document;',
    "export const page = await fetch('https://example.com');",
    'export const id = crypto.randomUUID();',
    'export const every = setInterval;',
    'export const at = performance.now();',
    'export const at = Temporal.Now.instant();',
  ],
  './lint/imports.grit': [
    'export const load = (name: string) => import(name);',
    "export type A = typeof import('../jobs/b.ts');",
  ],
  './lint/queries.grit': [
    "export const all = (db: { selectFrom: (name: string) => unknown }) => db.selectFrom('a');",
    'export const one = (sql: (text: TemplateStringsArray) => unknown) => sql`1`;',
    'export const all = (id: string) => `\n  select *\n  from a where id = $'.concat('{id}`;'),
    "export const none = 'PRAGMA foreign_keys = OFF';",
  ],
  './lint/engine-sql.grit': [
    "export const put = (db: { replaceInto: (name: string) => unknown }) => db.replaceInto('a');",
    "export const part = 'instr(domains, name) > 0';",
    "export const rows = 'order by rowid';",
    "export const ids = 'json_group_array(id)';",
    "export const last = 'sqlite_sequence';",
    'export const one = (sql: (text: TemplateStringsArray) => unknown) => sql`\n ifnull(a, 0)`;',
    "export const all = (CompiledQuery: { raw(text: string): unknown }) => CompiledQuery.raw('select ?');",
  ],
  './lint/waiting.grit': [
    "import { type Stats, statSync } from 'node:fs';\nexport const a: Stats = statSync('b');",
    "import { readFileSync as read } from 'node:fs';\nexport const a = read('b');",
    "import * as fs from 'node:fs';\nexport const a = fs.readFileSync('b');",
    "import fs from 'node:fs';\nexport const a = fs.readFileSync('b');",
    "export const { readFileSync } = await import('node:fs');",
  ],
  './lint/answers.grit': [
    'export const a = (b: { writeHead(c: number): void }) => b.writeHead(200);',
    "export const a = (b: { setHeader(c: string, d: string): void }) => b.setHeader('c', 'd');",
    'export const a = (b: string) => `HTTP/1.1 200 OK\\r\\n\\r\\n$'.concat('{b}`;'),
  ],
  './lint/refused-headers.grit': [
    "export const a = { 'Access-Control-Allow-Origin': '*' };",
    "export const a = { 'x-powered-by': 'a' };",
    "export const a = ['Server', 'a'];",
  ],
  './lint/compared-secrets.grit': [
    "import { timingSafeEqual as same } from 'node:crypto';\nexport const a = same;",
    'export const a = (row: { hash: string }, b: string) => row.hash === b;',
    "export const a = (token: Buffer, b: string) => b !== token.toString('hex').slice(1);",
    'export const a = (known: string[], apiKey: string) => known.includes(apiKey);',
    'export const a = (b: Map<string, number>, password: string) => b.get(password);',
    'export const a = (mac: Buffer, b: string) => mac.equals(Buffer.from(b));',
    'export const a = (b: { expose(): string }, c: string) => b.expose() === c;',
    'export const a = (newToken: string, c: string) => (newToken) !== c;',
  ],
  noDefaultExport: ['export default 1;'],
  noExportedImports: ["import { isIP } from 'node:net';\nexport { isIP };"],
  noReExportAll: [],
  noBarrelFile: ["export { b } from './b.ts';", "export * from './b.ts';"],
  noExcessiveLinesPerFile: [`export const a = [\n${'  1,\n'.repeat(249)}];\n`],
  noExplicitAny: ['export const a = (b: any) => b;'],
  useNodejsImportProtocol: ["import { join } from 'path';\nexport const a = join;"],
};

/** These only seem to break a rule. */
const fineForBiome: Sources = {
  'src/domain/b.ts': `import { type randomBytes, createHash } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { createReadStream, type Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
// process.env, setTimeout(), Math.random() and Date.now() are not for us. Never writeHead(); hash === other.
export type World = { now: () => number; fetch: (url: string) => unknown; process: NodeJS.Process };
export type All = [typeof randomBytes, Socket, IncomingMessage];
export function run(world: World, { setTimeout }: { setTimeout: () => void }, on: Date) {
  const { fetch: get, process } = world;
  setTimeout();
  return [world.fetch('x'), get, process, new Date(world.now()), on, 'Date.now', Math.max(1, 2), createHash, isIP('x')];
}
export function files(inSync: () => Stats) {
  return [createReadStream('x'), stat('x'), inSync()];
}
export const label = 'Update the settings from here';
export const a = { method: 'Access', version: 'as HTTP/1.1 has it', name: 'server is down', write: 1 };
export const c = (token: string | undefined, hashes: string[], hash: Buffer | null) =>
  [token === undefined, hash !== null, token === '', hashes.includes('x'), hashes.length === a.write];
export const load = async () => (await import('jose')).SignJWT;
`,
  'src/db/c.ts': "import { sql } from 'kysely';\nexport const one = sql`SELECT 1 FROM a`;\n",
  'src/db/lines.ts': `export const a = [\n${'  1,\n'.repeat(248)}];\n`,
  'test/http/a.test.ts':
    "export const a = (b: { writeHead: (c: string) => void }) => b.writeHead('Access-Control-Max-Age');\n",
};

/** By path: the rule and the source that breaks it. */
const brokenImports: Readonly<Record<string, readonly [rule: string, source: string]>> = {
  'src/domain/a.ts': ['domain-imports-upwards', "import { b } from '../http/fine.ts';"],
  'src/domain/type.ts': ['domain-imports-upwards', "import type { B } from '../jobs/fine.ts';"],
  'src/domain/passed.ts': ['domain-imports-upwards', "export { b } from '../http/fine.ts';"],
  'src/cli/main.ts': ['cli-imports-upwards', "import '../main.ts';"],
  'src/crypto/beside.ts': ['crypto-imports-upwards', "const b = await import('../db/fine.ts');"],
  'src/net/outside.ts': ['outside-of-src', "import { vault } from '../../test/harness/vault.ts';"],
  'src/base/library.ts': ['base-imports-library', "import { z } from 'zod';"],
  'src/jobs/driver.ts': ['driver-outside-db', "import Database from 'better-sqlite3';"],
  'src/jobs/builder.ts': ['driver-outside-db', "import type { Migration } from 'kysely/migration';"],
  'src/jobs/node-driver.ts': ['driver-outside-db', "import { DatabaseSync } from 'node:sqlite';"],
  'src/domain/file.ts': ['engine-outside-its-room', "import type { Lock } from '../db/sqlite/fine.ts';"],
  'src/db/tables/rows.ts': ['engine-outside-its-room', "import '../sqlite/fine.ts';"],
  'src/db/tables/driver.ts': ['driver-outside-its-engine', "import Database from 'better-sqlite3';"],
  'src/db/driver.ts': ['driver-outside-its-engine', "import type Database from 'better-sqlite3';"],
  'src/net/development.ts': ['undeclared-library', "import fc from 'fast-check';"],
  'src/net/missing.ts': ['unresolvable', "import './no-such.ts';"],
  'src/cli/no-floor.ts': ['no-floor', "import '../tools/a.ts';"],
  'src/http/query.ts': ['ways-in-import-db', "import type { B } from '../db/fine.ts';"],
  'src/dns/a.ts': ['no-circle', "import './b.ts';"],
  'assets/console/data/a.ts': ['console-data-imports-upwards', "import '../components/fine.tsx';"],
  'assets/console/forms/beside.ts': ['console-forms-imports-upwards', "import '../installer/fine.ts';"],
  'assets/console/text/server.ts': ['console-imports-server', "import '../../../src/domain/vault.ts';"],
  'assets/console/circle.ts': ['no-circle', "import './pages/fine.ts';"],
  'src/domain/a': ['no-circle-of-capabilities', ''],
  'src/domain/b': ['no-circle-of-capabilities', ''],
  'src/domain/c': ['no-circle-of-capabilities', ''],
  'src/http/rooms/a': ['no-circle-of-rooms-in-http', ''],
  'src/http/rooms/b': ['no-circle-of-rooms-in-http', ''],
  'src/cli/rooms/a': ['no-circle-of-rooms-in-cli', ''],
  'src/cli/rooms/b': ['no-circle-of-rooms-in-cli', ''],
  'src/crypto/rooms/a': ['no-circle-of-rooms-in-crypto', ''],
  'src/crypto/rooms/b': ['no-circle-of-rooms-in-crypto', ''],
};

/** What the sources above import, and what imports much and breaks nothing. */
const fineImports: Sources = {
  'package.json': readFileSync('package.json', 'utf8'),
  'src/http/rooms/a/one.ts': "import '../b/one.ts';",
  'src/http/rooms/a/two.ts': 'export const two = 2;',
  'src/http/rooms/b/one.ts': 'export const one = 1;',
  'src/http/rooms/b/two.ts': "import '../a/two.ts';",
  'src/cli/rooms/a/one.ts': "import '../b/one.ts';",
  'src/cli/rooms/a/two.ts': 'export const two = 2;',
  'src/cli/rooms/b/one.ts': 'export const one = 1;',
  'src/cli/rooms/b/two.ts': "import '../a/two.ts';",
  'src/crypto/rooms/a/one.ts': "import '../b/one.ts';",
  'src/crypto/rooms/a/two.ts': 'export const two = 2;',
  'src/crypto/rooms/b/one.ts': 'export const one = 1;',
  'src/crypto/rooms/b/two.ts': "import '../a/two.ts';",
  'src/main.ts': "import manifest from '../package.json';\nimport './cli/fine.ts';",
  'src/cli/fine.ts': "import '../http/fine.ts';\nimport '../domain/vault.ts';",
  'src/http/fine.ts': "import '../domain/vault.ts';\nimport 'zod';\nexport const b = 1;",
  'src/jobs/fine.ts': "import '../domain/vault.ts';\nexport type B = number;",
  'src/db/fine.ts': "import 'kysely';\nimport '../base/fine.ts';\nexport type B = number;",
  'src/db/database.ts': "import './sqlite/fine.ts';",
  'src/db/sqlite/fine.ts': "import 'better-sqlite3';\nimport 'kysely';\nexport type Lock = number;",
  'src/base/fine.ts': "import 'node:fs';",
  'src/tools/a.ts': '',
  'src/dns/b.ts': "import type { C } from './c.ts';",
  'src/dns/c.ts': "import './a.ts';",
  'src/domain/vault.ts': "import './d/a.ts';",
  'src/domain/d/a.ts': "import '../vault-types.ts';",
  'src/domain/vault-types.ts': "import type { A } from './d/type.ts';",
  'src/domain/d/type.ts': '',
  'src/domain/a/one.ts': "import '../b/one.ts';",
  'src/domain/b/one.ts': "import type { C } from '../c/one.ts';",
  'src/domain/c/one.ts': '',
  'src/domain/c/two.ts': "import '../a/two.ts';",
  'src/domain/a/two.ts': '',
  'assets/console/pages/fine.ts': "import '../forms/fine.ts';\nimport '../circle.ts';",
  'assets/console/forms/fine.ts': "import '../components/fine.tsx';\nimport '../../../src/base/fine.ts';",
  'assets/console/installer/fine.ts': '',
  'assets/console/components/fine.tsx': '',
  'test/harness/vault.ts': 'export const vault = 1;',
};

suite('Biome', () => {
  const cases = Object.entries(brokenForBiome).flatMap(([rule, sources]) =>
    sources.map((source, index) => ({
      rule: rule.endsWith('.grit') ? messageOf(rule) : rule,
      path: `src/${rule === './lint/engine-sql.grit' ? 'db' : 'domain'}/${rule.replaceAll(/[^a-zA-Z]/g, '').toLowerCase()}-${index}.ts`,
      source,
    })),
  );
  const misnamed = 'src/domain/apiKeys.ts';
  let findings: Finding[] = [];
  before(() => {
    const dir = tempDir({ after });
    const broken = Object.fromEntries(cases.map(({ path, source }) => [path, source]));
    writeProject(dir, { ...broken, ...fineForBiome, [misnamed]: 'export const a = 1;\n' });
    findings = runBiome(dir);
  });
  const of = (path: string) => findings.filter(({ file }) => file === path).map(({ rule }) => rule);

  for (const { rule, path, source } of cases) {
    test(`${rule} ${source.replaceAll(/\s+/g, ' ').slice(0, 90)}`, () =>
      assert.ok(of(path).includes(rule), String(of(path))));
  }
  test('useFilenamingConvention', () => assert.deepEqual(of(misnamed), ['useFilenamingConvention']));

  for (const path of Object.keys(fineForBiome)) {
    test(`finds nothing in ${path}`, () => assert.deepEqual(of(path), []));
  }

  test('each plugin has a source that breaks it', () => {
    const used = biomeConfig().overrides.flatMap(({ plugins = [] }) => plugins);
    assert.deepEqual(
      used.filter((plugin) => brokenForBiome[plugin] === undefined),
      [],
    );
  });

  test('each exception is needed', (t) => {
    const config: BiomeConfig = biomeConfig();
    const globals = config.overrides.find(
      ({ includes, linter }) =>
        includes?.every((path) => path === 'src/**') &&
        JSON.stringify(linter ?? '').includes('noRestrictedGlobals'),
    );
    const expected = config.overrides.flatMap(({ includes = [], plugins = [], linter }) => {
      const files = plugins.length > 0 ? includes.filter((path) => path.startsWith('!')) : includes;
      const mayUseGlobals = JSON.stringify(linter ?? '').includes('noRestrictedGlobals');
      if (plugins.length === 0 && !mayUseGlobals) return [];
      return files
        .map((path) => path.replace('!', ''))
        .filter((path) => !path.includes('*'))
        .map((file) => ({
          file,
          rule: plugins.length > 0 ? messageOf(plugins[0] ?? '') : 'noRestrictedGlobals',
        }));
    });
    const withoutExceptions = config.overrides
      .filter(
        ({ includes, plugins }) => plugins !== undefined || !includes?.some((path) => path.endsWith('.ts')),
      )
      .map((one) => (one.plugins ? { ...one, includes: ['src/**'] } : one));
    assert.ok(globals !== undefined && expected.length > 30, `${expected.length} exceptions were found`);
    const dir = tempDir(t);
    const files = [...new Set(expected.map(({ file }) => file))];
    const sources = Object.fromEntries(
      files.map((file) => [file, existsSync(file) ? readFileSync(file, 'utf8') : '']),
    );
    writeProject(dir, sources, { ...config, overrides: withoutExceptions });
    const found = runBiome(dir, files).map(({ file, rule }) => `${file}: ${rule}`);
    assert.deepEqual(
      expected.map(({ file, rule }) => `${file}: ${rule}`).filter((one) => !found.includes(one)),
      [],
    );
  });
});

suite('dependency-cruiser', () => {
  let findings: Finding[] = [];
  before(() => {
    const dir = tempDir({ after });
    const broken = Object.entries(brokenImports).filter(([path]) => path.endsWith('.ts'));
    writeProject(dir, {
      ...Object.fromEntries(broken.map(([path, [, source]]) => [path, source])),
      ...fineImports,
    });
    findings = runDependencyCruiser(dir);
  });
  const of = (path: string) => findings.filter(({ file }) => file === path).map(({ rule }) => rule);

  for (const [path, [rule]] of Object.entries(brokenImports)) {
    test(`${rule}: ${path}`, () => assert.deepEqual(of(path), [rule]));
  }
  test('finds nothing else', () => {
    const expected = [
      ...Object.keys(brokenImports),
      'src/dns/b.ts',
      'src/dns/c.ts',
      'assets/console/pages/fine.ts',
    ];
    assert.deepEqual(
      findings.filter(({ file }) => !expected.includes(file)),
      [],
    );
  });
});

/** Tests about several files at once, or about the whole product. */
const testsWithoutSource = [
  ...['test/architecture', 'test/reader-time'],
  ...['test/words', 'test/cli/full-disk', 'test/db/tables/query-plans', 'test/http/database-attacker'],
  'test/http/surface-fuzz',
  ...['executable', 'installer', 'screenshots', 'torture', 'docs', 'runner'].map(
    (folder) => `test/${folder}/`,
  ),
];

suite('rules without a tool', () => {
  test('the map in CONTRIBUTING.md lists existing files that contain its search terms', () => {
    const rows = readFileSync('CONTRIBUTING.md', 'utf8').match(/^\| .*`src\/.* \|$/gm) ?? [];
    assert.equal(rows.length, 10);
    for (const row of rows) {
      const [, , places = '', terms = ''] = row.split('|');
      const codes = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
      const missing = codes(places).filter((path) => !existsSync(path));
      assert.deepEqual(missing, [], row);
      const texts = codes(places).map((path) => (path.endsWith('.ts') ? readFileSync(path, 'utf8') : ''));
      for (const term of codes(terms))
        assert.ok(
          texts.some((text) => text.includes(term)),
          `${row}: ${term}`,
        );
    }
  });

  const files = globSync('{src,assets,test}/**/*.{ts,tsx}');

  test('a test is named after the file that it tests, with a dash and its subject if there are several', () => {
    const sources = [...files, ...globSync('bench/*.ts')]
      .filter((path) => !path.startsWith('test/'))
      .map((path) => path.replace(/^(?:src|assets)\/|\.tsx?$/g, ''));
    const tests = files.filter(
      (path) => path.endsWith('.test.ts') && !testsWithoutSource.some((begin) => path.startsWith(begin)),
    );
    const lost = tests.filter((path) => {
      const tested = path.replace(/^test\/|\.test\.ts$/g, '');
      return !sources.some((source) => tested === source || tested.startsWith(`${source}-`));
    });
    assert.deepEqual(lost, []);
  });

  test('a folder of the product has at most 25 files', () => {
    // What everything uses, and what grows with each release.
    const exempt = [
      'src/base',
      'src/db/sqlite/migrations',
      'src/db/postgres/migrations',
      'src/dns/providers',
    ];
    const counts = Map.groupBy(globSync('src/**/*.ts'), (path) => dirname(path));
    const crowded = [...counts].filter(([folder, inside]) => inside.length > 25 && !exempt.includes(folder));
    assert.deepEqual(
      crowded.map(([folder, inside]) => `${folder}: ${inside.length}`),
      [],
    );
  });

  test('each file begins with a comment that says what it is for', () => {
    const begin = /^(\/\*\*?|\/\/)[\s*]*[^\s*/]/;
    assert.deepEqual(
      files.filter((path) => !begin.test(readFileSync(path, 'utf8'))),
      [],
    );
  });

  test('file names have no generic words such as utils or helpers', () => {
    assert.deepEqual(
      files.filter((path) => /[/-](utils?|helpers?|manager|service|common|misc)[/.-]/.test(path)),
      [],
    );
  });
});
