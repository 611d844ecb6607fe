/**
 * A stand-in for the next release: the sources of this one with a higher version, and with one migration more on
 * PostgreSQL, which adds a column to every table, as a release may that runs beside this one during an upgrade.
 */
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { tempDir } from '../harness/temp-dir.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The name of its migration, after all others. */
export const nextMigration = '9999-next-release';

export type NextRelease = { readonly version: string; readonly program: readonly string[] };

const migration = `
const nextRelease: Migration = {
  async up(db) {
    const { rows } = await sql<{ name: string }>\`
      select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE'
        and table_name not like 'kysely%'\`.execute(db);
    for (const { name } of rows)
      await sql.raw(\`alter table "\${name}" add column of_next_release text not null default 'new'\`).execute(db);
    await sql.raw('create table next_release (id bigint primary key)').execute(db);
  },
};
`;

/** Writes it to a folder that is removed after the test. It runs from source, on this Node. */
export function nextRelease(t: TestContext): NextRelease {
  const folder = tempDir(t);
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
  for (const name of ['node_modules', 'assets']) symlinkSync(join(root, name), join(folder, name));
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  const [major, minor] = manifest.version.split('.').map(Number);
  const version = `${major}.${(minor ?? 0) + 1}.0`;
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version }));
  const path = join(folder, 'src/db/postgres/migrations/migrations.ts');
  const list = 'export const migrations: Migrations = {';
  const [before, after, more] = readFileSync(path, 'utf8').split(list);
  if (after === undefined || more !== undefined) throw new Error(`${path} has no list of migrations`);
  const entry = `${list}\n  '${nextMigration}': nextRelease,`;
  const imports = "import { sql } from 'kysely';\n";
  writeFileSync(path, `${imports}${before}${migration}${entry}${after}`);
  return { version, program: [process.execPath, join(folder, 'src/main.ts')] };
}
