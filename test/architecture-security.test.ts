/**
 * What of the house's safety is a matter of construction: where answers are written, and who may look at secrets and compare
 * them (security-plan.ts). Every rule is tried on sources that break it too.
 */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Rule } from './harness/house-rules.ts';
import { comparedSecrets, exposers } from './harness/security-plan.ts';
import * as security from './harness/security-rules.ts';
import { readHouses, type Sources } from './harness/source-facts.ts';

type Breach = readonly [title: string, sources: Sources, complaint: string];

const http = (text: string): Sources => ({ 'src/http/a.ts': text });

/** By rule: what is wrong, the sources, and what the rule says about them. */
const breaches: ReadonlyMap<Rule, readonly Breach[]> = new Map<Rule, readonly Breach[]>([
  [
    security.answersWrittenElsewhere,
    [
      [
        'an answer of its own',
        http('export const a = (b: { writeHead(c: number): void }) => b.writeHead(200);'),
        'src/http/a.ts writes an answer: writeHead',
      ],
      [
        'a header more',
        http("export const a = (b: Map<string, string> & { setHeader: any }) => b.setHeader('c', 'd');"),
        'src/http/a.ts writes an answer: setHeader',
      ],
      [
        'an answer by the byte',
        http('export const a = (b: string) => `HTTP/1.1 200 OK\\r\\n\\r\\n$'.concat('{b}`;')),
        'src/http/a.ts writes an answer: HTTP/1.1 200 OK\r\n\r\n',
      ],
    ],
  ],
  [
    security.headersRefused,
    [
      [
        'a header that lets other sites in',
        http("export const a = { 'Access-Control-Allow-Origin': '*' };"),
        'src/http/a.ts names the header Access-Control-Allow-Origin',
      ],
      [
        'a header that tells what serves the vault',
        http("export const a = { 'x-powered-by': 'a' };"),
        'src/http/a.ts names the header x-powered-by',
      ],
    ],
  ],
  [
    security.secretsExposed,
    [
      [
        'a secret that is looked at',
        http("import type { Secret } from '../base/secret.ts';\nexport const a = (b: Secret) => b.expose();"),
        'src/http/a.ts exposes secrets at 1 places, known are 0',
      ],
      [
        'a second look where one is known',
        { 'src/cli/commands/api-key.ts': 'export const a = (b: any, c: any) => [b.expose(), c.expose()];' },
        'src/cli/commands/api-key.ts exposes secrets at 2 places, known are 1',
      ],
    ],
  ],
  [
    security.secretsCompared,
    [
      [
        'a comparison of its own',
        http("import { timingSafeEqual as same } from 'node:crypto';\nexport { same as b };"),
        'src/http/a.ts compares by itself: timingSafeEqual',
      ],
      [
        'a hash that is compared',
        http('export const a = (row: { hash: string }, b: string) => row.hash === b;'),
        'src/http/a.ts compares a secret: row.hash === b',
      ],
      [
        'a token in another form',
        http("export const a = (token: Buffer, b: string) => b != token.toString('hex').slice(1);"),
        "src/http/a.ts compares a secret: b != token.toString('hex').slice(1)",
      ],
      [
        'a list of tokens',
        http('export const a = (known: string[], apiKey: string) => known.includes(apiKey);'),
        'src/http/a.ts compares a secret: known.includes(apiKey)',
      ],
      [
        'a map of passwords',
        http('export const a = (b: Map<string, number>, password: string) => b.get(password);'),
        'src/http/a.ts compares a secret: b.get(password)',
      ],
      [
        'bytes by their own method',
        http('export const a = (mac: Buffer, b: string) => mac.equals(Buffer.from(b));'),
        'src/http/a.ts compares a secret: mac.equals(Buffer.from(b))',
      ],
    ],
  ],
]);

const lookalikes: Sources = {
  'src/http/a.ts': `// Never writeHead() elsewhere, nor Access-Control-Allow-Origin.
    export const a = { method: 'Access', version: 'as HTTP/1.1 has it', name: 'server is down', write: 1 };
    export const b = a.write;
    // hash === other, token.expose()
    export const c = (token: string | undefined, hashes: string[], hash: Buffer | null) =>
      [token === undefined, hash !== null, token === '', hashes.includes('x'), hashes.length === a.write];`,
  'test/http/a.test.ts': "export const a = (b: { writeHead: any }) => b.writeHead('Access-Control-Max-Age');",
};

const cases = [...breaches].flatMap(([rule, list]) => list.map((breach) => [rule, breach] as const));
const paths = globSync('src/**/*.ts');
const [real = [], alike = [], ...broken] = readHouses([
  Object.fromEntries(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(path, 'utf8')])),
  lookalikes,
  ...cases.map(([, [, sources]]) => sources),
]);

for (const [title, rule] of Object.entries(security.securityRules)) {
  test(title, () => {
    assert.deepEqual(rule(real), []);
    assert(breaches.has(rule), 'nobody has seen this rule fail');
  });
  test(`what only looks like a breach is let through: ${title}`, () => assert.deepEqual(rule(alike), []));
}

test('no exception outlives its need', () => {
  assert.deepEqual(security.needlessEntries(real), []);
  assert.equal(security.needlessEntries([]).length, exposers.length + comparedSecrets.length);
});

for (const [index, [rule, [title, , complaint]]] of cases.entries()) {
  test(`caught: ${title}`, () => assert.deepEqual(rule(broken[index] ?? []), [complaint]));
}
