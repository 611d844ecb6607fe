/** The table of docs/how-to/deploy-targets.md has all types with their settings. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { z } from 'zod';
import { targetTypes } from '../../src/targets/target-types.ts';

const manual = readFileSync(new URL('../../docs/how-to/deploy-targets.md', import.meta.url), 'utf8');
const rows = new Map(
  [...manual.matchAll(/^\| `([a-z-]+)` \| (.+) \| (?:yes|no) \|$/gm)].map(([, type, settings]) => [
    type,
    settings,
  ]),
);

test('the table in the manual has all types in the order of the help text', () => {
  assert.deepEqual([...rows.keys()], [...targetTypes.keys()]);
});

for (const [name, { config }] of targetTypes) {
  test(`the row of ${name} in the manual has all settings of the type`, () => {
    const { shape } = config as unknown as z.ZodObject;
    const written = [...(rows.get(name) ?? '').matchAll(/`([a-z_]+)/g)].map(([, word]) => word);
    const missing = Object.keys(shape).filter((setting) => !written.includes(setting));
    assert.deepEqual(missing, []);
  });
}
