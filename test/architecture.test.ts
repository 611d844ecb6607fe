/**
 * The house as a test: which file may import which, where the world comes in, and how files look (design.md, "The
 * house"). Every rule is tried on sources that break it too, or nobody would know that it can fail.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { allowed, maxLines, testsThatMirrorNothing } from './harness/house-plan.ts';
import * as house from './harness/house-rules.ts';
import { readHouses, type Sources } from './harness/source-facts.ts';

type Breach = readonly [title: string, sources: Sources, complaint: string];

const comment = '/** Holds a thing, for the tests. */\n';
const domain = (text: string): Sources => ({ 'src/domain/a.ts': text });

const touches = (kind: string, cases: readonly (readonly [text: string, use: string])[]): Breach[] =>
  cases.map(([text, use]) => [text, domain(text), `src/domain/a.ts touches ${kind}: ${use}`]);

/** By rule: what is wrong, the sources, and what the rule says about them. */
const breaches: ReadonlyMap<house.Rule, readonly Breach[]> = new Map<house.Rule, readonly Breach[]>([
  [
    house.importsUpwards,
    [
      [
        'an import of a higher storey',
        domain("import { b } from '../http/b.ts';"),
        'src/domain/a.ts imports upwards: src/http/b.ts',
      ],
      [
        'a type of a higher storey',
        domain("import type { B } from '../cli/b.ts';"),
        'src/domain/a.ts imports upwards: src/cli/b.ts',
      ],
      [
        'an import type of a higher storey',
        domain("export type A = typeof import('../jobs/b.ts');"),
        'src/domain/a.ts imports upwards: src/jobs/b.ts',
      ],
      [
        'an export from a higher storey',
        domain("export { b } from '../http/b.ts';"),
        'src/domain/a.ts imports upwards: src/http/b.ts',
      ],
      [
        'an import of main.ts',
        { 'src/cli/a.ts': "import '../main.ts';" },
        'src/cli/a.ts imports upwards: src/main.ts',
      ],
      [
        'an import() of the folder beside',
        { 'src/crypto/a.ts': "const b = await import('../db/b.ts');" },
        'src/crypto/a.ts imports from beside: src/db/b.ts',
      ],
      [
        'a library in base/',
        { 'src/base/a.ts': "import { z } from 'zod';" },
        'src/base/a.ts imports zod, but base/ has no libraries',
      ],
      [
        'an import that only the running program knows',
        domain('export const load = (name: string) => import(name);'),
        'src/domain/a.ts imports what nobody can know: the name is computed',
      ],
      ['a folder without a storey', { 'src/tools/a.ts': '' }, 'src/tools/a.ts is on no storey'],
      [
        'an import from outside of the house',
        domain("import { vault } from '../../test/harness/test-vault.ts';"),
        'src/domain/a.ts imports from outside of src: test/harness/test-vault.ts',
      ],
    ],
  ],
  [
    house.importCircles,
    [
      [
        'a circle of three, one of them by a type',
        {
          'src/db/a.ts': "import './b.ts';",
          'src/db/b.ts': "import type { C } from './c.ts';",
          'src/db/c.ts': "import { a } from './a.ts';",
        },
        'src/db/a.ts → src/db/b.ts → src/db/c.ts → src/db/a.ts',
      ],
      ['a file that imports itself', { 'src/db/a.ts': "import './a.ts';" }, 'src/db/a.ts → src/db/a.ts'],
    ],
  ],
  [
    house.touchesOfTheWorld,
    [
      ...touches('clock', [
        ['export const at = Date.now();', 'Date.now'],
        ['export const clock = { now: Date.now };', 'Date.now'],
        ['export const at = new Date();', 'new Date()'],
        ['const { now } = Date;', 'Date'],
        ['export const at = performance.now();', 'performance.now'],
        ["import { performance } from 'node:perf_hooks';", 'node:perf_hooks performance'],
      ]),
      ...touches('timers', [
        ['setTimeout(() => undefined, 1000);', 'setTimeout'],
        ['export const every = setInterval;', 'setInterval'],
        ['export const signal = AbortSignal.timeout(10);', 'AbortSignal.timeout'],
        ["import { setTimeout as delay } from 'timers/promises';", 'node:timers/promises setTimeout'],
      ]),
      ...touches('randomness', [
        ['export const dice = Math.random();', 'Math.random'],
        ['export const id = crypto.randomUUID();', 'crypto.randomUUID'],
        ["import { createHash, randomBytes as bytes } from 'node:crypto';", 'node:crypto randomBytes'],
        ["import * as anything from 'node:crypto';", 'node:crypto *'],
        ["import anything from 'node:crypto';", 'node:crypto default'],
        ["export const anything = await import('node:crypto');", 'node:crypto *'],
      ]),
      ...touches('network', [
        ["export const page = await fetch('https://example.com');", 'fetch'],
        ["export const socket = new WebSocket('wss://example.com');", 'new WebSocket(…)'],
        ["import { request } from 'node:https';", 'node:https request'],
        ["import { connect, isIP } from 'node:net';", 'node:net connect'],
        ["import 'node:dns';", 'node:dns *'],
      ]),
      ...touches('environment', [
        ['export const home = process.env.HOME;', 'process.env'],
        ["export const home = process['env'];", 'process'],
        ['const { argv } = process;', 'process'],
        ['export const everything = { process };', 'process'],
        ["import process from 'node:process';", 'node:process default'],
        ["process.stdout.write('hello');", 'process.stdout'],
        ["console.log('hello');", 'console.log'],
        ['export const world = globalThis.process;', 'globalThis.process'],
        ["import { hostname } from 'node:os';", 'node:os hostname'],
      ]),
      [
        'more than a file is allowed',
        { 'src/cli/serving/supervisor.ts': 'export const id = [process.pid, process.env];' },
        'src/cli/serving/supervisor.ts touches environment: process.env',
      ],
      [
        'a whole module where one name of it is allowed',
        { 'src/crypto/key-pair.ts': "import * as anything from 'node:crypto';" },
        'src/crypto/key-pair.ts touches randomness: node:crypto *',
      ],
    ],
  ],
  [
    house.queriesOutsideDb,
    [
      [
        'the driver',
        domain("import Database from 'better-sqlite3';"),
        'src/domain/a.ts imports better-sqlite3',
      ],
      [
        "the query builder's types",
        domain("import type { Migration } from 'kysely/migration';"),
        'src/domain/a.ts imports kysely/migration',
      ],
      [
        'a query',
        domain("export const all = (db: { selectFrom: unknown }) => db.selectFrom('a');"),
        'src/domain/a.ts builds a query: selectFrom',
      ],
      [
        'a tagged query',
        domain('export const one = (sql: unknown) => sql`1`;'),
        'src/domain/a.ts builds a query: sql',
      ],
      [
        'SQL in a template',
        domain('export const all = (id: string) => `\n  select *\n  from a where id = $'.concat('{id}`;')),
        'src/domain/a.ts holds SQL: select * from',
      ],
    ],
  ],
  [
    house.filesTooLong,
    [
      [
        'a file of 251 lines beside one of 250',
        { 'src/db/a.ts': '\n'.repeat(maxLines + 1), 'assets/console/b.ts': '\n'.repeat(maxLines) },
        'src/db/a.ts has 251 lines',
      ],
      [
        'a last line without an end',
        { 'assets/console/a.ts': `${'\n'.repeat(maxLines)}1` },
        'assets/console/a.ts has 251 lines',
      ],
    ],
  ],
  [
    house.filesMisnamed,
    [
      ['camelCase', { 'src/db/apiKeys.ts': '' }, 'src/db/apiKeys.ts is not in kebab-case'],
      ['a folder in capitals', { 'src/DB/keys.ts': '' }, 'src/DB/keys.ts is not in kebab-case'],
      ['a name of no field', { 'src/db/key-utils.ts': '' }, 'src/db/key-utils.ts is called "utils"'],
      ['a folder of no field', { 'src/common/key.ts': '' }, 'src/common/key.ts is called "common"'],
      ['a test of no field', { 'test/db/misc.test.ts': '' }, 'test/db/misc.test.ts is called "misc"'],
    ],
  ],
  [
    house.filesWithoutComment,
    [
      [
        'a file that begins with code',
        { 'src/db/a.ts': "import './b.ts';\n// Why not.", 'src/db/b.ts': comment },
        'src/db/a.ts begins without a comment',
      ],
      ['an empty comment', { 'src/db/a.ts': '/** */' }, 'src/db/a.ts begins without a comment'],
    ],
  ],
  [
    house.testsWithoutSource,
    [
      [
        'a test of nothing',
        { 'test/db/a-b.test.ts': '', 'src/db/a-c.ts': '', 'src/http/a-b.ts': '' },
        'test/db/a-b.test.ts tests no file of src or assets',
      ],
      [
        'a test beside the folders',
        { 'test/a.test.ts': '' },
        'test/a.test.ts tests no file of src or assets',
      ],
      [
        'a fixture among the tests',
        { 'test/db/a.ts': '', 'src/db/a.ts': '' },
        'test/db/a.ts is no test: it belongs into test/harness',
      ],
    ],
  ],
  [
    house.exportsRefused,
    [
      ['a default', domain('export default 1;'), 'src/domain/a.ts has a default export'],
      [
        'a default function',
        { 'assets/console/a.ts': 'export default function a() {}' },
        'assets/console/a.ts has a default export',
      ],
      [
        'a default by another name',
        domain('const a = 1;\nexport { a as default };'),
        'src/domain/a.ts has a default export',
      ],
      ['a barrel', domain("export * from './b.ts';"), 'src/domain/a.ts passes on *'],
      ['one name of a barrel', domain("export { b } from './b.ts';"), 'src/domain/a.ts passes on b'],
      [
        'a barrel in two steps',
        domain("import { b as c } from './b.ts';\nexport { c };"),
        'src/domain/a.ts passes on c',
      ],
    ],
  ],
]);

const lookalikes: Sources = {
  'src/base/a.ts': `${comment}import { isIP } from 'node:net';
    export const at = (text: string) => isIP(text) || Date.parse(text);`,
  'src/domain/b.ts': `${comment}import type { IncomingMessage } from 'node:http';
    import { type randomBytes, createHash } from 'node:crypto';
    import { a } from '../base/a.ts';
    // process.env, setTimeout(), Math.random() and Date.now() are not for us.
    export type World = { now: () => number; fetch: typeof fetch; process: NodeJS.Process };
    export function run(world: World, { setTimeout }: { setTimeout: () => void }, on: Date) {
      const { fetch: get, process } = world;
      setTimeout();
      return [world.fetch('x'), get, process, new Date(world.now()), on, 'Date.now', Math.max(1, 2), createHash];
    }
    export const label = 'Update the settings from here';`,
  'src/db/c.ts': `${comment}import { sql } from 'kysely';\nexport const one = sql\`SELECT 1 FROM a\`;`,
  'src/http/d.ts': `// Also a comment.\nimport { STATUS_CODES } from 'node:http';\nimport { run } from '../domain/b.ts';
    switch (run) { default: }\nconst e = STATUS_CODES;\nexport { e as codes };`,
  'src/cli/f.ts': '/** `vault f`: begins with code, but in a comment. */',
  'src/main.ts': `${comment}import manifest from '../package.json';\nimport './http/d.ts';\nprocess.exitCode = 1;`,
  'test/domain/b.test.ts': comment,
  'test/domain/b-under-load.test.ts': comment,
  'test/harness/b.ts': comment,
  'test/executable/anything.test.ts': comment,
  'test/main.test.ts': comment,
  'assets/console/h.ts': comment,
  'test/console/h.test.ts': comment,
};

const cases = [...breaches].flatMap(([rule, list]) => list.map((breach) => [rule, breach] as const));
const paths = globSync('{src,assets,test}/**/*.{ts,tsx}', {
  exclude: (path) => path.endsWith('node_modules'),
});
const [real = [], alike = [], ...broken] = readHouses([
  Object.fromEntries(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(path, 'utf8')])),
  lookalikes,
  ...cases.map(([, [, sources]]) => sources),
]);

for (const [title, rule] of Object.entries(house.rules)) {
  test(title, () => {
    assert.deepEqual(rule(real), []);
    assert(breaches.has(rule) || rule === house.needlessExceptions, 'nobody has seen this rule fail');
  });
}

for (const [index, [rule, [title, , complaint]]] of cases.entries()) {
  test(`caught: ${title}`, () => assert.deepEqual(rule(broken[index] ?? []), [complaint]));
}

test('caught: exceptions that nothing needs', () => {
  const exceptions = allowed.flatMap(({ uses }) => uses).length + testsThatMirrorNothing.length;
  assert.equal(house.needlessExceptions([]).length, exceptions);
});

for (const [title, rule] of Object.entries(house.rules)) {
  if (rule === house.needlessExceptions) continue;
  test(`what only looks like a breach is let through: ${title}`, () => assert.deepEqual(rule(alike), []));
}
