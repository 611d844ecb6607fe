/**
 * Someone who can write to the database but lacks the master key, and would like a token that creates API keys: what
 * they put in, change or put back is refused, and found by the doctor and by the verification of the audit log.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { createEnrollmentToken } from '../../src/crypto/secrets/enrollment-token.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { verifyChain } from '../../src/domain/audit/audit-verification.ts';
import { authenticityFindings } from '../../src/domain/doctor/upkeep-findings.ts';
import { deleteEnrollment, revokeEnrollment } from '../../src/domain/enrollments/enrollments.ts';
import { moveGeneration, outside, outsideUnchecked } from '../harness/database/outside-database.ts';
import { checkedServer } from '../harness/http/checked.ts';
import { exchange, makeEnrollment } from '../harness/http/enrollments.ts';
import { makeCertificate } from '../harness/http/fixtures.ts';

type Row = Readonly<Record<string, unknown>>;

async function attacked(t: TestContext) {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1' });
  const { vault, dataDir } = server;
  await makeCertificate(vault, 'mine');
  const enrollment = await makeEnrollment(vault, { ...{ uses: 2, certificates: ['mine'] } });
  const sql = (text: string, ...values: unknown[]) =>
    outside(dataDir, (db) => db.prepare(text).run(...values));
  const rowOf = (table: string) =>
    outside(dataDir, (db) => db.prepare(`select * from ${table} where id = 1`).get()) as Row;
  const putBack = (table: string, row: Row) => {
    const columns = Object.keys(row);
    outsideUnchecked(dataDir, (db) => {
      db.exec(`delete from ${table} where id = 1`);
      db.prepare(
        `insert into ${table} (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      ).run(...Object.values(row));
    });
    moveGeneration(dataDir);
  };
  const enroll = async (host: string, token = enrollment.token) =>
    (await exchange<{ key: string }>(server, token, { host })).status;
  const faults = async () => (await verifyChain(vault)).faults.map(({ message }) => message);
  const doctor = async () => (await authenticityFindings(vault))[0];
  return { server, vault, dataDir, enrollment, sql, rowOf, putBack, enroll, faults, doctor };
}

suite('an enrollment', () => {
  for (const [what, change] of [
    ['adds uses', 'update enrollments set max_uses = 100'],
    ['takes uses back', 'update enrollments set uses = 0'],
    ['adds a scope', `update enrollments set scopes = '["certificates:write","private_keys:read"]'`],
    ['extends it to any certificate', 'update enrollments set any_certificate = 1'],
    ['adds a certificate', `update enrollments set certificates = '[[1,"mine"],[2,"other"]]'`],
    ['adds a label of certificates', `update enrollments set certificate_labels = '["team=web"]'`],
    ['changes its networks', `update enrollments set allowed_networks = '["0.0.0.0/1"]'`],
    ['binds no key to an address', 'update enrollments set bind_address = 1 - bind_address'],
    ['extends its expiry', 'update enrollments set expires_at = 99999999999999'],
    ['extends the expiry of its keys', 'update enrollments set key_expires_at = 99999999999999'],
    ['changes its labels', `update enrollments set labels = '["team=web"]'`],
    ['changes its name', "update enrollments set name = 'other'"],
    ['changes its id', 'update enrollments set id = 77'],
  ] as const) {
    test(`creates no key after an attacker ${what}, and the doctor reports its row`, async (t) => {
      const { server, sql, enroll, faults, doctor, rowOf } = await attacked(t);
      assert.equal(await enroll('www1'), 201);
      assert.deepEqual([await faults(), (await doctor())?.status], [[], 'ok']);
      sql(change);
      assert.equal(await enroll('www2'), 401, 'the response of an unknown token');
      const found = await doctor();
      assert.equal(found?.status, 'failed');
      assert.match(JSON.stringify(found), /enrollment (1|77) \((rack|other)\)/);
      assert.match(
        server.log.lines.join('\n'),
        /"level":"error","enrollment":\d+,"message":"enrollment token rejected: database row modified/,
      );
      assert.equal(rowOf('api_keys')?.enrollment_id, 1, 'the key that it created before works on');
    });
  }

  test('is among the rows that the doctor reports as unmodified', async (t) => {
    const { doctor } = await attacked(t);
    assert.equal(
      (await doctor())?.message,
      'API keys, ACME clients, enrollments, administrators, sessions and labels are unmodified',
    );
  });

  test('creates no key if it was inserted into the database, without a tag or with a copied one', async (t) => {
    const { server, sql, rowOf, enroll, doctor } = await attacked(t);
    const { raw, prefix, hash } = createEnrollmentToken(server.world);
    const row = rowOf('enrollments');
    for (const tag of [null, Buffer.alloc(32), row.tag]) {
      sql("delete from enrollments where name = 'eve'");
      sql(
        `insert into enrollments (name, prefix, hash, scopes, any_certificate, certificates, allowed_networks,
           bind_address, max_uses, uses, created_by, created_at, expires_at, tag)
         values ('eve', ?, ?, '["private_keys:read"]', 1, '[]', '[]', 0, 9, 0, 'eve', 1, 99999999999999, ?)`,
        ...[prefix, hash, tag],
      );
      assert.equal(await enroll('www1', raw.expose()), 401);
    }
    assert.equal((await doctor())?.status, 'failed');
    assert.equal(await enroll('www1'), 201, 'the others go on');
  });

  test('gets no uses back when its row from before an exchange is restored', async (t) => {
    const { rowOf, putBack, enroll, faults } = await attacked(t);
    const before = rowOf('enrollments');
    assert.equal(await enroll('www1'), 201);
    assert.equal(await enroll('www2'), 201);
    putBack('enrollments', before);
    assert.equal(await enroll('www3'), 401);
    assert.match((await faults()).join('\n'), /^[^\n]*enrollment 1 \(rack\)[^\n]*$/);
  });

  test('stays revoked when its row from before is restored, also after it was deleted', async (t) => {
    const { vault, enrollment, rowOf, putBack, enroll, faults } = await attacked(t);
    const before = rowOf('enrollments');
    await revokeEnrollment(vault, localCli, enrollment.id, { api_keys: false });
    putBack('enrollments', before);
    assert.equal(await enroll('www1'), 401);
    assert.equal((await verifyChain(vault)).faults[0]?.kind, 'revived');
    await revokeEnrollment(vault, localCli, enrollment.id, { api_keys: false });
    await deleteEnrollment(vault, localCli, enrollment.id);
    assert.deepEqual(await faults(), []);
    putBack('enrollments', before);
    assert.equal(await enroll('www1'), 401);
    assert.equal((await verifyChain(vault)).faults[0]?.kind, 'revived');
  });

  for (const how of ['used up', 'revoked'] as const) {
    test(`stays ${how} when its row from before is restored and its events are removed`, async (t) => {
      const { vault, dataDir, enrollment, rowOf, putBack, enroll, doctor } = await attacked(t);
      const before = rowOf('enrollments');
      if (how === 'used up') {
        assert.deepEqual([await enroll('www1'), await enroll('www2')], [201, 201]);
      } else await revokeEnrollment(vault, localCli, enrollment.id, { api_keys: false });
      assert.equal(await enroll('www3'), 409);
      putBack('enrollments', before);
      outsideUnchecked(dataDir, (db) => {
        db.exec("delete from audit_events where resource = 'enrollment:1'");
      });
      moveGeneration(dataDir);
      assert.equal((await doctor())?.status, 'failed');
      assert.deepEqual([await enroll('www4'), await enroll('www5')], [401, 401]);
      assert.equal((await doctor())?.status, 'failed', 'no refused exchange writes the row again');
      assert.match(JSON.stringify(await doctor()), /enrollment 1 \(rack\)/);
    });
  }

  test('stays revoked if it was altered before, and the row from before that is restored', async (t) => {
    const { vault, enrollment, sql, rowOf, putBack, enroll } = await attacked(t);
    const before = rowOf('enrollments');
    sql('update enrollments set max_uses = 100');
    await revokeEnrollment(vault, localCli, enrollment.id, { api_keys: false });
    putBack('enrollments', before);
    assert.equal(await enroll('www1'), 401);
    assert.equal((await verifyChain(vault)).faults[0]?.kind, 'revived');
  });
});

test('an API key whose enrollment was changed in the database is refused, so that revoking them together misses none', async (t) => {
  const { server, sql, enrollment } = await attacked(t);
  const { json } = await exchange<{ key: string }>(server, enrollment.token);
  const status = async () => (await server.get('/api/v1/whoami', json.key)).status;
  assert.equal(await status(), 200);
  for (const change of [
    'enrollment_id = null',
    'enrollment_id = 2',
    'enrollment_id = 1, enrollment_request = hash',
  ]) {
    sql(`update api_keys set ${change}`);
    moveGeneration(server.dataDir);
    assert.equal(await status(), 401, change);
  }
  sql('update api_keys set enrollment_request = null');
  moveGeneration(server.dataDir);
  assert.equal(await status(), 200);
});
