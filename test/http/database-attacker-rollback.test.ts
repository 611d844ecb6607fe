/**
 * Someone who can write to the database but lacks the master key, and puts back what stood there before: rows with the tags that the
 * vault gave them, and the end of the audit log. What they put back is refused and found, while the log stands.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { verifyChain } from '../../src/domain/audit/audit-verification.ts';
import { checkedServer } from '../harness/http-checked.ts';
import { makeCertificate, makeKey } from '../harness/http-fixtures.ts';
import { outside, putOutside } from '../harness/outside-database.ts';

const file = (name: string) => `/api/v1/certificates/${name}/private.key`;

async function attacked(t: TestContext) {
  const server = await checkedServer(t);
  const { vault, dataDir } = server;
  await makeCertificate(vault, 'mine');
  await makeCertificate(vault, 'other');
  const key = await makeKey(vault, { scopes: ['private_keys:read'] });
  const value = (sql: string) => outside(dataDir, (db) => db.prepare(sql).pluck().get());
  const status = async (raw: string, name = 'mine') => (await server.get(file(name), raw)).status;
  const faults = async () => (await verifyChain(vault)).faults.map(({ id, kind }) => `${id} ${kind}`);
  return { server, vault, dataDir, key, value, status, faults };
}

suite('the audit log', () => {
  test('whose newest events are cut off, with its mark put back, shows it from the next event on', async (t) => {
    const { server, dataDir, key, value, status, faults } = await attacked(t);
    const mark = String(value("select value from settings where key = 'audit-mark'"));
    const last = Number(value('select max(id) from audit_events'));
    assert.equal(await status(key.raw), 200);
    assert.equal(await status(key.raw, 'other'), 200);
    outside(dataDir, (db) => db.prepare('delete from audit_events where id > ?').run(last));
    putOutside(dataDir, 'audit-mark', mark);
    assert.equal(await status(key.raw), 200, 'certificates stay available');
    assert.deepEqual(await faults(), [`${last + 3} missing`]);
    assert.match(
      server.log.lines.join('\n'),
      new RegExp(`"level":"error","from":${last + 1},"to":${last + 2},"message":"audit log stepped back`),
    );
    await server.stop();
    const again = await checkedServer(t, { dataDir, world: server.world });
    assert.equal((await again.get(file('mine'), key.raw)).status, 200);
    assert.deepEqual(
      (await verifyChain(again.vault)).faults.map(({ id, kind }) => `${id} ${kind}`),
      [`${last + 3} missing`],
    );
  });
});
