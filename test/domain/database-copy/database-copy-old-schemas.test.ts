/** Vaults of every schema that has shipped move to PostgreSQL: what they export and record is the same there. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { assertSame, contentsOf, done } from '../../harness/database/moving-vault.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const folder = new URL('../../schemas/', import.meta.url);
const schemas = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));
const read = (schema: string, name: string) => readFileSync(new URL(`${schema}/${name}`, folder));

test('the fixtures have at least 13 old schemas', () => {
  assert.ok(schemas.length >= 13);
});

for (const schema of schemas) {
  test(
    `a vault of the schema ${schema} exports the same after it moved to PostgreSQL`,
    needsPostgres(),
    async (t) => {
      const data = join(tempDir(t), 'data');
      mkdirSync(data, { mode: 0o700 });
      writeFileSync(join(data, 'vault.db'), gunzipSync(read(schema, 'vault.db.gz')), { mode: 0o600 });
      writeFileSync(join(data, 'master.key'), read(schema, 'master.key'), { mode: 0o600 });
      const url = await (await postgresServer()).createDatabase();
      const there = ['--data-dir', data, '--database', url];
      await done('database', 'copy', '--to', url, '--data-dir', data);
      assertSame(await contentsOf(join(data, 'vault.db')), await contentsOf(url), ['database.copy']);
      await done('audit', 'verify', ...there);
      const key = join(data, 'exported');
      await done('certificate', 'export', '--name=imported', `--out=${key}`, ...there);
      assert.equal(readFileSync(join(key, 'private.key'), 'utf8'), read(schema, 'served.key').toString());
      const exported = await done('export', ...there);
      await done('database', 'reopen', '--yes', '--data-dir', data);
      assert.equal(await done('export', '--data-dir', data), exported);
    },
  );
}
