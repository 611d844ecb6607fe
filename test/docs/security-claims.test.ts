/**
 * The security model says what holds because a test holds it: each claim of docs/explanation/decisions/security.md
 * names one, and the tests that are named exist. The page for operators has the same claims in fewer words, and none of
 * its own.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url);

type Claim = { readonly title: string; readonly tests: readonly string[] };

/** The bullets of a text, with what stands in brackets and is neither a link nor code. */
function claimsOf(text: string): Claim[] {
  return [...text.matchAll(/^- (.+(?:\n {2}.+)*)/gm)].map(([, bullet = '']) => ({
    title: /\*\*(.+?)\*\*/s.exec(bullet)?.[1] ?? bullet,
    tests: [...bullet.replaceAll(/`[^`]*`/g, '').matchAll(/\[([a-z0-9/-]+)\](?!\()/g)].map(
      ([, name = '']) => name,
    ),
  }));
}

function complaintsAbout(claims: readonly Claim[]): string[] {
  return claims.flatMap(({ title, tests }) => [
    ...(tests.length === 0 ? [`no test holds: ${title}`] : []),
    ...tests
      .filter((name) => !existsSync(new URL(`test/${name}.test.ts`, root)))
      .map((name) => `${name} is no test: ${title}`),
  ]);
}

test('each claim of the security model lists existing tests', () => {
  const claims = claimsOf(readFileSync(new URL('docs/explanation/decisions/security.md', root), 'utf8'));
  assert(claims.length > 30, `${claims.length} claims were found`);
  assert.deepEqual(complaintsAbout(claims), []);
});

test('a claim without a test or with a missing test is reported', () => {
  const text = [
    '- **Held.** So it is. [base/secret]',
    '- **Long.** It goes on',
    '  in another line ([as you see](#here)). [crypto/secrets/sealing]',
    '- **Believed.** It was always so ([a link](base/secret)).',
    '- **Forgotten.** The test has gone. [base/no-such]',
  ].join('\n');
  assert.deepEqual(complaintsAbout(claimsOf(text)), [
    'no test holds: Believed.',
    'base/no-such is no test: Forgotten.',
  ]);
});
