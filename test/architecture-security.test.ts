/**
 * Secrets are read only where they are needed: every call of expose() is counted, by file. The other rules that guard
 * secrets are plugins of Biome in lint/, which test/architecture.test.ts tries.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { tempDir } from './harness/temp-dir.ts';
import { type BiomeConfig, biomeConfig, messageOf, runBiome, writeProject } from './rule-runs.ts';
import { exposers } from './secret-readers.ts';

const plugin = './lint/exposed-secrets.grit';

function config(): BiomeConfig {
  return {
    ...biomeConfig(),
    linter: { rules: { preset: 'none' } },
    overrides: [{ includes: ['src/**'], plugins: [plugin] }],
  };
}

/** How often each file exposes a secret. */
function exposures(dir: string): Record<string, number> {
  const calls = runBiome(dir, ['src']).filter(({ rule }) => rule === messageOf(plugin));
  const files = [...new Set(calls.map(({ file }) => file))].sort();
  return Object.fromEntries(files.map((path) => [path, calls.filter(({ file }) => file === path).length]));
}

test('secrets are exposed only in the files of the table and as often as it says', (t) => {
  const dir = tempDir(t);
  writeProject(dir, {}, config());
  cpSync(join(import.meta.dirname, '..', 'src'), join(dir, 'src'), { recursive: true });
  const known = exposers.map(({ file, calls }): [string, number] => [file, calls]);
  assert.deepEqual(exposures(dir), Object.fromEntries(known.sort(([a], [b]) => (a < b ? -1 : 1))));
});

test('each call is counted, on any receiver', (t) => {
  const dir = tempDir(t);
  writeProject(
    dir,
    {
      'src/http/a.ts': 'export const a = (b: any, c: any) => [b.expose(), c?.key.expose(), c.expose];',
      'src/http/b.ts': '// b.expose()\nexport const exposed = (b: { exposes(): string }) => b.exposes();',
    },
    config(),
  );
  assert.deepEqual(exposures(dir), { 'src/http/a.ts': 3 });
});
