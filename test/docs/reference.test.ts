/**
 * The pages of docs/reference that are written by "node build-docs.ts" are up to date, and say what people look for
 * there.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { referencePages } from '../../build-docs.ts';
import { commonOptions, serveOptions } from '../../src/cli/settings/settings.ts';
import { metricFamilies } from '../../src/http/metrics/metric-families.ts';
import { allCommands } from '../harness/command-tree.ts';

const root = join(import.meta.dirname, '..', '..');
const pages = await referencePages();
const page = (name: string) => pages.get(`docs/reference/${name}.md`) ?? '';

for (const [path, text] of pages) {
  test(`${path} is what "node build-docs.ts" writes`, () => {
    assert.equal(readFileSync(join(root, path), 'utf8'), text, 'run "node build-docs.ts"');
  });
}

test('every setting is in the table, with its variable and its name in vault.yaml', () => {
  for (const flag of [...Object.keys(commonOptions), ...Object.keys(serveOptions)]) {
    const key = flag.replaceAll('-', '_');
    const row = `| \`--${flag}\` | \`CERTVAULT_${key.toUpperCase()}\` |${flag === 'config' ? '' : ` \`${key}\``} |`;
    assert.ok(page('settings').includes(row), row);
  }
});

test('every command has a section with its options, and every metric a row', async () => {
  const sections = new Map(
    page('cli')
      .split('\n## ')
      .map((text) => [text.slice(0, text.indexOf('\n')), text] as const),
  );
  for (const { words, specs } of await allCommands()) {
    const section = sections.get(`vault ${words.join(' ')}`);
    assert.ok(section !== undefined, words.join(' '));
    if (words[0] === 'serve') continue;
    for (const [name, { positional }] of Object.entries(specs))
      if (!Object.hasOwn(commonOptions, name) && positional !== true)
        assert.ok(section.includes(`\`--${name}`), `vault ${words.join(' ')} --${name}`);
  }
  for (const name of Object.keys(metricFamilies))
    assert.ok(page('metrics').includes(`| \`${name}\` |`), name);
});
