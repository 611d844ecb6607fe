/** The page about ACME clients has the lines that the console shows. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { acmeDirectoryUrl, acmeRecipes, exampleDomain } from '../../src/base/acme-recipes.ts';

const page = readFileSync(new URL('../../docs/how-to/acme-clients.md', import.meta.url), 'utf8');

for (const { title, lines } of Object.values(acmeRecipes)) {
  test(`acme-clients.md has the lines of the console for ${title}`, () => {
    const directory = acmeDirectoryUrl('https://vault.example.com:8443', 'local-ca');
    const text = lines({ directory, kid: 'KID', hmacKey: 'HMAC_KEY', domain: 'www.example.com' });
    const [, section = ''] = page.split(`\n### ${title}\n`);
    assert(section.split('\n### ')[0]?.includes(`\n${text}\n\`\`\``), text);
  });
}

test('exampleDomain returns a name that the patterns permit', () => {
  const examples = [['a.example'], ['*.a.example', 'b.example'], ['*'], ['10.0.0.0/8'], ['192.0.2.7'], []];
  assert.deepEqual(
    examples.map((patterns) => exampleDomain(patterns)),
    ['a.example', 'www.a.example', 'www.example.com', '10.0.0.0', '192.0.2.7', 'www.example.com'],
  );
});
