/** `vault database` as processes: what it says, and what it refuses because of who else uses the databases. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { openPlace } from '../../../harness/database/moving-vault.ts';
import { needsPostgres } from '../../../harness/postgres/binaries.ts';
import { postgresServer, startPostgres } from '../../../harness/postgres/postgres.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { fromSource, serve, vault } from '../../../harness/processes/vault-process.ts';

const needed = needsPostgres();

async function withCertificate(t: Parameters<typeof commandLine>[0]) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=web.test');
  return line;
}

test(
  'database copy prints what it copied and the next steps, and the vault serves from PostgreSQL',
  needed,
  async (t) => {
    const { data, done } = await withCertificate(t);
    const url = await (await postgresServer()).createDatabase();
    const moved = await done('database', 'copy', '--to', url);
    assert.equal(
      moved.stderr.replace(/\d+ (rows|audit|sealed)/g, 'N $1'),
      `Copied N rows. Verified N audit events, and opened N sealed secrets.
The master key is not in the database. It stays in ${data}/master.key: copy that file, with mode 0600, to each node.
Start each node with: vault serve --database ${url}
${data}/vault.db refuses commands and servers from now on; "vault database reopen" would take that back.
Make a backup of the vault in its new place, then delete the old database.
`,
    );
    const server = await serve(t, data, { args: ['--database', url] });
    const ready = async () => (await fetch(`${server.url}/api/v1/ready`)).status;
    // Not before it is known which node runs the background jobs.
    for (let status = await ready(); status !== 200; status = await ready()) assert.equal(status, 503);
    assert.equal((await server.end()).code, 0);
    const again = await vault(['serve', '--data-dir', data, '--listen=127.0.0.1:0']);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /was moved to postgres:/);
  },
);

test('database copy is rejected while a server uses the source database', needed, async (t) => {
  const { data, done, refused } = await withCertificate(t);
  const postgres = await postgresServer();
  const [url, other] = [await postgres.createDatabase(), await postgres.createDatabase()];
  const onFile = await serve(t, data);
  await refused(['database', 'copy', '--to', url], /the vault is running.*\n {2}Stop "vault serve"/);
  assert.equal((await fetch(`${onFile.url}/api/v1/ready`)).status, 200);
  // What a killed server leaves is no obstacle: the lock of the file says that it is gone.
  await onFile.end('SIGKILL');
  await done('database', 'copy', '--to', url);
  const onServer = await serve(t, data, { args: ['--database', url] });
  await refused(
    ['database', 'copy', '--database', url, '--to', other],
    /is being served.*\n {2}Stop "vault serve" on all/,
  );
  assert.equal((await onServer.end()).code, 0);
  await done('database', 'copy', '--database', url, '--to', other);
});

test(
  'a database password in an argument is rejected, but accepted in CERTVAULT_DATABASE',
  needed,
  async (t) => {
    const { data, done, refused } = await withCertificate(t);
    const url = await (await postgresServer()).createDatabase();
    const open = url.replace('vault@', 'vault:vault-password@');
    const expected = (
      option: string,
    ) => `vault: ${option} contains a password, which every user of this machine can see
  Leave it out, and pass it with PGPASSWORD or a password file (PGPASSFILE). CERTVAULT_DATABASE may contain it, too.
`;
    await refused(['database', 'copy', '--to', open], expected('--to'));
    await refused(['database', 'copy', '--to', `${url}?password=x`], expected('--to'));
    await refused(['certificate', 'list', '--database', open], expected('--database'));
    await refused(
      ['certificate', 'list', '--database', `${url}?sslmode=disable&sslpassword=x`],
      expected('--database'),
    );
    await done('database', 'copy', '--to', url);
    const environment = { CERTVAULT_DATABASE: open };
    const { code, stdout } = await vault(['certificate', 'list', '--data-dir', data], { environment });
    assert.equal(code, 0);
    assert.match(stdout, /^web /m);
  },
);

test('database copy leaves the source usable after a full disk or a PostgreSQL crash', needed, async (t) => {
  const { data, done, run } = await withCertificate(t);
  const postgres = await startPostgres(t);
  const url = await postgres.createDatabase();
  const blocked = await postgres.createDatabase();
  const file = join(data, 'vault.db');
  const db = await openPlace(file);
  await db.write((writer) =>
    writer
      .updateTable('certificates')
      .set({ last_error: 'x'.repeat(4_000_000) })
      .execute(),
  );
  await db.close();
  await done('database', 'copy', '--to', url);
  const back = join(data, '..', 'back');
  // 2048 blocks of 512 bytes (dash) or 1024 (bash): enough for the schema, not for the row.
  const program = ['sh', '-c', 'ulimit -f 2048; exec "$0" "$@"', ...fromSource];
  const copy = ['database', 'copy', '--data-dir', data, '--database', url, '--to', back];
  const full = await vault(copy, { program });
  assert.equal(full.code, 1, full.stderr);
  assert.match(
    full.stderr,
    /^vault: (the disk with the database is full|failed to read or write the database) /,
  );
  assert.deepEqual(readdirSync(back), []);
  assert.match((await run('certificate', 'list', '--database', url)).stdout, /^web /m);
  await done(...copy.slice(0, 2), '--database', url, '--to', back);
  assert.ok(existsSync(join(back, 'vault.db')));

  // The copy waits for a table that someone else has locked, when the server dies.
  const key = ['--master-key-file', join(data, 'master.key')];
  await (await openPlace(blocked)).close();
  const other = new pg.Client({ connectionString: blocked });
  other.on('error', () => {
    // It dies with the server.
  });
  await other.connect();
  await other.query('begin; lock table audit_events in exclusive mode');
  const dying = vault(['database', 'copy', '--data-dir', back, '--to', blocked, ...key]);
  while ((await postgres.query('select 1 from pg_locks where not granted')).length === 0);
  await postgres.kill();
  assert.equal((await dying).code, 1);
  assert.match((await vault(['certificate', 'list', '--data-dir', back, ...key])).stdout, /^web /m);
});
