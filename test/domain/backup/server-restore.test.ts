/** Backups of vaults on a PostgreSQL server, and backups that are restored into one: the same files as of any vault. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { realWorld } from '../../../src/base/world.ts';
import { Database } from '../../../src/db/database.ts';
import { backupPassphrase } from '../../harness/database/backup-fixtures.ts';
import {
  type Contents,
  contentsOf,
  done,
  filledVault,
  refused,
} from '../../harness/database/moving-vault.ts';
import { needsPostgres } from '../../harness/postgres/binaries.ts';
import { postgresServer } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const needed = needsPostgres();

/** A restored database has an id of its own, and no sessions. */
function restored({ tables, settings, events, assigned }: Contents, more: number): unknown {
  const { sessions: _, ...rest } = tables;
  const kept = (settings as { key: string }[]).filter(({ key }) => !key.startsWith('vault-id'));
  return { tables: rest, settings: kept, events: events.slice(0, events.length - more), assigned };
}

async function movedToServer(t: Parameters<typeof filledVault>[0]) {
  const data = await filledVault(t);
  const server = await postgresServer();
  const url = await server.createDatabase();
  await done('database', 'copy', '--to', url, '--data-dir', data);
  return { data, url, server, dir: tempDir(t), there: ['--data-dir', data, '--database', url] };
}

test(
  'a backup of a vault on a server restores into a directory and into another server',
  needed,
  async (t) => {
    const { data, url, server, dir, there } = await movedToServer(t);
    const file = join(dir, 'vault.backup');
    const before = await contentsOf(url);
    await done('backup', file, ...there);
    await done('restore', file, '--check', ...there);
    const key = ['--master-key-file', join(data, 'master.key')];
    const back = join(dir, 'back');
    await done('restore', file, '--data-dir', back, ...key);
    const inFile = await contentsOf(join(back, 'vault.db'));
    assert.deepEqual(restored(inFile, 1), restored(before, 0));
    const other = await server.createDatabase();
    await done('restore', file, '--data-dir', data, '--database', other);
    const onServer = await contentsOf(other);
    assert.deepEqual(restored(onServer, 1), restored(before, 0));
    assert.deepEqual((onServer.events.at(-1) as { action: string }).action, 'backup.restore');
    for (const place of [
      ['--data-dir', back, ...key],
      ['--data-dir', data, '--database', other],
    ]) {
      await done('audit', 'verify', ...place);
      await done('certificate', 'create', '--name=next', '--domain=next.test', ...place);
    }
    assert.deepEqual(
      readdirSync(data).filter((name) => name.includes('restoring')),
      [],
    );
    // Old and new backups of both engines are one format.
    const again = join(dir, 'again.backup');
    await done('backup', again, '--data-dir', back, ...key);
    const third = await server.createDatabase();
    await done('restore', again, '--data-dir', data, '--database', third);
    assert.equal(
      await done('export', '--data-dir', data, '--database', third),
      await done('export', '--data-dir', back, ...key),
    );
  },
);

test('a backup is a consistent snapshot despite concurrent writes', needed, async (t) => {
  const { url, dir } = await movedToServer(t);
  const writing = await Database.connect(url, { world: realWorld, directory: dir, connections: 1 });
  let writes = 0;
  const world = {
    ...realWorld,
    turn: async () => {
      writes += 1;
      await writing.write((writer) =>
        writer
          .insertInto('issuers')
          .values({ name: `issuer-${writes}`, type: 'acme', created_at: 1 })
          .execute(),
      );
    },
  };
  const before = await contentsOf(url);
  const db = await Database.connect(url, { world, directory: dir, connections: 1 });
  const copy = join(dir, 'copy.db');
  writeFileSync(copy, '', { mode: 0o600 });
  await db.copyTo(copy);
  await db.close();
  await writing.close();
  assert.ok(writes > 5, 'each table is followed by a write');
  const { tables, settings, events } = await contentsOf(copy);
  assert.deepEqual(
    { tables, settings, events },
    { tables: before.tables, settings: before.settings, events: before.events },
  );
  assert.deepEqual(readdirSync(dir), ['copy.db']);
});

test(
  'a restore rejects a server database that contains a vault, and a failed restore leaves it empty',
  needed,
  async (t) => {
    const { url, server, dir, there, data } = await movedToServer(t);
    const file = join(dir, 'vault.backup');
    await done('backup', file, ...there);
    const restore = ['restore', file, '--data-dir', data, '--database'];
    await refused([...restore, url], /already contains a vault\n {2}Name an empty database/);
    await refused([...restore, url, '--replace'], /is not replaced\n {2}Restore into an empty database/);
    const empty = await server.createDatabase();
    const damaged = join(dir, 'damaged.backup');
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(20_000) ^ 1, 20_000);
    writeFileSync(damaged, bytes);
    await refused(['restore', damaged, '--data-dir', data, '--database', empty], /is damaged/);
    const elsewhere = join(dir, 'elsewhere');
    await refused(
      ['restore', file, '--data-dir', elsewhere, '--database', empty],
      /needs master key [0-9a-f]{16}, but .* is missing/,
    );
    await done(...restore, empty);
    await refused([...restore, empty], /already contains a vault/);
  },
);

test('restoring a backup with its master key into a server writes the master key file', needed, async (t) => {
  const { server, dir, there } = await movedToServer(t);
  const file = join(dir, 'vault.backup');
  const passphrase = join(dir, 'passphrase');
  writeFileSync(passphrase, backupPassphrase, { mode: 0o600 });
  const withKey = ['--passphrase-file', passphrase];
  await done('backup', file, '--with-master-key', ...withKey, ...there);
  const fresh = join(dir, 'fresh');
  const url = await server.createDatabase();
  await done('restore', file, '--data-dir', fresh, '--database', url, ...withKey);
  assert.ok(existsSync(join(fresh, 'master.key')));
  assert.match(await done('certificate', 'list', '--data-dir', fresh, '--database', url), /^web /m);
  assert.deepEqual(
    readdirSync(fresh).filter((name) => name !== 'master.key'),
    [],
  );
});

const schemas = new URL('../../schemas/', import.meta.url);
const withBackups = readdirSync(schemas).filter((name) =>
  existsSync(new URL(`${name}/vault.backup.gz`, schemas)),
);

for (const schema of withBackups) {
  test(`a backup of the schema ${schema} restores into a server`, needed, async (t) => {
    const dir = tempDir(t);
    const file = join(dir, 'old.backup');
    const key = join(dir, 'master.key');
    writeFileSync(file, gunzipSync(readFileSync(new URL(`${schema}/vault.backup.gz`, schemas))));
    writeFileSync(key, readFileSync(new URL(`${schema}/master.key`, schemas)), { mode: 0o600 });
    const url = await (await postgresServer()).createDatabase();
    const [data, there] = [join(dir, 'data'), join(dir, 'there')];
    await done('restore', file, '--data-dir', data, '--master-key-file', key);
    await done('restore', file, '--data-dir', there, '--master-key-file', key, '--database', url);
    const options = ['--data-dir', there, '--master-key-file', key, '--database', url];
    assert.equal(
      await done('export', ...options),
      await done('export', '--data-dir', data, '--master-key-file', key),
    );
    await done('audit', 'verify', ...options);
  });
}
