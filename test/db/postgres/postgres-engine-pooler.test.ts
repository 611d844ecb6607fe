/**
 * Two nodes behind a pooler that hands out sessions by transaction: one chain, no lost change, no settings left behind.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { chainBeginning, hashIn, linkOf } from '../../../src/db/audit/audit-chain.ts';
import type { NewAuditEvent } from '../../../src/db/audit/audit-insertion.ts';
import { Database } from '../../../src/db/database.ts';
import { putSetting, readSetting } from '../../../src/db/tables/settings.ts';
import { bound } from '../../harness/database/bound-database.ts';
import { needsPgbouncer, startPgbouncer } from '../../harness/postgres/pgbouncer.ts';
import { startPostgres } from '../../harness/postgres/postgres.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const event: NewAuditEvent = {
  at: 1,
  actor: 'system',
  action: 'certificate.download',
  resource: 'certificate:web',
  detail: '{}',
  ip: null,
  request_id: null,
};

async function node(t: TestContext, url: string): Promise<Database> {
  const db = await Database.connect(url, { world: realWorld, environment: {}, directory: tempDir(t) });
  t.after(() => db.close());
  return bound(db);
}

test('two nodes behind PgBouncer write one audit chain and lose no update', needsPgbouncer(), async (t) => {
  const server = await startPostgres(t);
  await server.createDatabase('pooled');
  const via = await startPgbouncer(t, server, { default_pool_size: '4' });
  const nodes = [await node(t, via('pooled')), await node(t, via('pooled'))];
  // Any number of the vault's own: each change reads it and writes it.
  const key = 'last-backup-at';
  const count = (db: Database) =>
    db.write(async (writer) => {
      await putSetting(writer, key, Number((await readSetting(writer, key)) ?? 0) + 1);
    });
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const db = nodes[index % 2] as Database;
      await Promise.all([count(db), db.append([{ ...event, at: index }]), db.generation()]);
    }),
  );
  for (const db of nodes) {
    assert.equal(await readSetting(db.reader, key), 40);
    const events = await db.reader.selectFrom('audit_events').selectAll().orderBy('id').execute();
    assert.equal(events.length, 40);
    let link = chainBeginning.link;
    for (const one of events) {
      link = linkOf(link, one);
      assert.ok(link.equals(hashIn(one.link)), `event ${one.id}`);
    }
  }
});
