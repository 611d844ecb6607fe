/** Backups and exports that the vaults of every schema have written are restored and applied by the newest one. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const folder = new URL('../../schemas/', import.meta.url);
const schemas = readdirSync(folder)
  .filter((name) => /^\d{4}-/.test(name))
  .sort();
const read = (schema: string, name: string) => readFileSync(new URL(`${schema}/${name}`, folder));
const having = (name: string) =>
  schemas.filter((schema) => readdirSync(new URL(schema, folder)).includes(name));

/** The first schema whose vault knew the command, up to the last but one: the newest is written by every other test. */
const since = (first: string) => schemas.slice(0, -1).filter((schema) => schema >= first);

test('the fixtures have a backup of every schema since 0004 and an export since 0006', () => {
  const backups = having('vault.backup.gz');
  const exports = having('export.yaml');
  const hint = 'run test/schemas/make-backup.sh COMMIT SCHEMA';
  assert.deepEqual(
    since('0004').filter((schema) => !backups.includes(schema)),
    [],
    hint,
  );
  assert.deepEqual(
    since('0006').filter((schema) => !exports.includes(schema)),
    [],
    hint,
  );
});

for (const schema of having('vault.backup.gz')) {
  test(`a backup of the schema ${schema} is restored and served, and applying its export changes nothing`, async (t) => {
    const root = tempDir(t);
    const data = join(root, 'data');
    const backup = join(root, 'vault.backup');
    mkdirSync(data, { mode: 0o700 });
    writeFileSync(backup, gunzipSync(read(schema, 'vault.backup.gz')));
    writeFileSync(join(data, 'master.key'), read(schema, 'master.key'), { mode: 0o600 });
    const done = async (...args: string[]) => {
      const { code, stdout, stderr } = await vault([...args, '--data-dir', data]);
      assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
      return stdout + stderr;
    };
    assert.match(await done('restore', backup, '--check'), /The backup is intact and can be restored/);
    assert.match(await done('restore', backup), /2 certificates, 2 versions, 2 API keys/);
    const { key, revoked } = JSON.parse(read(schema, 'facts.json').toString()) as Record<string, string>;
    const server = await serve(t, data);
    const get = (bearer = '') =>
      fetch(`${server.url}/api/v1/certificates/imported/private.key`, {
        headers: { Authorization: `Bearer ${bearer}` },
      });
    const served = await get(key);
    assert.deepEqual([served.status, await served.text()], [200, read(schema, 'served.key').toString()]);
    assert.equal((await get(revoked)).status, 401);
    await done('audit', 'verify');
    if (!having('export.yaml').includes(schema)) return;
    const state = join(root, 'export.yaml');
    writeFileSync(state, read(schema, 'export.yaml'));
    assert.match(await done('apply', '-f', state, '--dry-run', '--exit-code'), /^No changes\.$/m);
    await done('apply', '-f', state);
  });
}
