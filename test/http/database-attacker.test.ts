/**
 * Someone who can write to the database but lacks the master key, as docs/explanation/security.md has it: what they put
 * in, change or cut off is refused or found, at once, after the next write of the vault, and after a restart.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { sha256 } from '../../src/base/sha256.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import { createToken } from '../../src/crypto/secrets/api-key-token.ts';
import { hashPassword } from '../../src/crypto/secrets/password-hash.ts';
import { seal } from '../../src/crypto/secrets/sealing.ts';
import { createSetupToken } from '../../src/crypto/secrets/session-token.ts';
import { linkOf } from '../../src/db/audit/audit-chain.ts';
import type { AuditEventRow } from '../../src/db/audit/audit-events.ts';
import { deleteAdministrator } from '../../src/domain/access/administrators.ts';
import { rotateApiKey } from '../../src/domain/access/api-key-rotation.ts';
import { revokeApiKey } from '../../src/domain/access/api-keys.ts';
import { offerSetup } from '../../src/domain/access/setup.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { verifyChain } from '../../src/domain/audit/audit-verification.ts';
import { authenticityFindings } from '../../src/domain/doctor/upkeep-findings.ts';
import { parseInput } from '../../src/domain/inputs.ts';
import { updateMark } from '../../src/domain/instance/served-vault.ts';
import { addProfile } from '../../src/domain/issuers/issuer-profiles.ts';
import { createProfileInput } from '../../src/domain/private-ca/profile-inputs.ts';
import {
  moveGeneration,
  type OutsideDatabase,
  outside,
  outsideUnchecked,
  putOutside,
} from '../harness/database/outside-database.ts';
import { ofFiles, testedEngine } from '../harness/database/tested-engine.ts';
import { checkedServer } from '../harness/http/checked.ts';
import { makeCertificate, makeKey } from '../harness/http/fixtures.ts';
import {
  cheapHash,
  fromPage,
  goodPassword,
  makeAdministrator,
  otherPassword,
  signIn,
} from '../harness/http/sign-in-fixtures.ts';
import { settingsFor, testVault } from '../harness/test-vault.ts';
import { TestWorld } from '../harness/test-world.ts';

const file = (name: string) => `/api/v1/certificates/${name}/private.key`;

async function attacked(t: TestContext) {
  const server = await checkedServer(t);
  const { vault, dataDir } = server;
  await makeCertificate(vault, 'mine');
  await makeCertificate(vault, 'other');
  const key = await makeKey(vault, { certificates: ['mine'], scopes: ['private_keys:read'] });
  /** The attacker's access: any SQL, past the vault. */
  const sql = (text: string, ...values: unknown[]) =>
    outside(dataDir, (db) => db.prepare(text).run(...values));
  const all = <T>(text: string) => outside(dataDir, (db) => db.prepare(text).all()) as T[];
  const status = async (raw: string, name = 'mine') => (await server.get(file(name), raw)).status;
  const faults = async () => (await verifyChain(vault)).faults.map(({ id, kind }) => `${id} ${kind}`);
  const doctor = async () => (await authenticityFindings(vault))[0]?.status;
  return { server, vault, dataDir, key, sql, all, status, faults, doctor };
}

suite('an API key', () => {
  test('inserted into the database is rejected without a tag, with a zero tag and with a copied tag', async (t) => {
    const { sql, all, status, key, server, doctor } = await attacked(t);
    const { raw, prefix, hash } = createToken(server.world);
    const insert = `insert into api_keys (name, prefix, hash, scopes, any_certificate, created_at, tag)
      values ('eve', ?, ?, '["private_keys:read"]', 1, 1, ?)`;
    const [known] = all<{ tag: Buffer }>('select tag from api_keys');
    for (const tag of [null, Buffer.alloc(32), known?.tag]) {
      sql("delete from api_keys where name = 'eve'");
      sql(insert, prefix, hash, tag);
      assert.equal(await status(raw.expose()), 401);
    }
    assert.equal(await doctor(), 'failed');
    assert.equal(await status(key.raw), 200, 'the others go on');
    assert.match(
      server.log.lines.join('\n'),
      /"level":"error","api_key":\d+,"message":"API key refused: its database row was modified/,
    );
  });

  for (const [what, change] of [
    ['changes its scopes', `update api_keys set scopes = '["certificates:read","private_keys:read"]'`],
    ['extends it to any certificate', 'update api_keys set any_certificate = 1'],
    [
      'adds a certificate to its allowlist',
      "insert into api_key_certificates select 1, id from certificates where name = 'other'",
    ],
    [
      'replaces the certificate in its allowlist',
      "update api_key_certificates set certificate_id = (select id from certificates where name = 'other')",
    ],
    [
      'swaps the names of two certificates',
      `update certificates set name = 'x' where name = 'mine';
       update certificates set name = 'mine' where name = 'other'`,
    ],
    ['changes its networks', `update api_keys set allowed_networks = '["0.0.0.0/1"]'`],
    ['extends its expiry', 'update api_keys set expires_at = 99999999999999'],
    ['changes its name', "update api_keys set name = 'admin'"],
    ['changes its id', 'update api_keys set id = 77'],
  ] as const) {
    test(`is rejected after an attacker ${what}`, async (t) => {
      const { key, status, doctor, dataDir } = await attacked(t);
      assert.equal(await status(key.raw), 200);
      outsideUnchecked(dataDir, (db) => db.exec(change));
      // What the server remembers of the key is what the vault wrote; the attacker wants it read again.
      moveGeneration(dataDir);
      assert.equal(await status(key.raw), 401);
      assert.equal(await status(key.raw, 'other'), 401);
      assert.equal(await doctor(), 'failed');
    });
  }

  test('is rejected after its secret was replaced in the database, also when a later revocation is undone there', async (t) => {
    const { key, sql, status, vault, server } = await attacked(t);
    const { raw, prefix, hash } = createToken(server.world);
    sql('update api_keys set prefix = ?, hash = ? where id = ?', prefix, hash, key.id);
    assert.deepEqual([await status(raw.expose()), await status(key.raw)], [401, 401]);
    await revokeApiKey(vault, localCli, key.id);
    sql('update api_keys set revoked_at = null where id = ?', key.id);
    assert.equal(await status(raw.expose()), 401);
  });

  test('stays revoked when its revocation is cleared in the database, also after a restart', async (t) => {
    const { key, sql, status, vault, server, dataDir } = await attacked(t);
    await revokeApiKey(vault, localCli, key.id);
    sql('update api_keys set revoked_at = null');
    assert.equal(await status(key.raw), 401);
    await server.stop();
    const again = await checkedServer(t, { dataDir, world: server.world });
    assert.equal((await again.get(file('mine'), key.raw)).status, 401);
  });

  test('is rejected and reported by audit log verification if its row from before its revocation is restored', async (t) => {
    const { key, sql, all, status, vault, faults } = await attacked(t);
    const [row] = all<{ tag: Buffer }>('select tag from api_keys');
    await revokeApiKey(vault, localCli, key.id);
    assert.deepEqual(await faults(), []);
    sql('update api_keys set revoked_at = null, tag = ?', row?.tag);
    assert.equal(await status(key.raw), 401, 'its row is as the vault wrote it once');
    const [event] = all<{ id: number }>("select id from audit_events where action = 'api_key.revoke'");
    assert.deepEqual(await faults(), [`${event?.id} revived`]);
  });

  test('is rejected and reported by audit log verification if its secret from before a rotation is restored', async (t) => {
    const { key, sql, all, status, vault, faults } = await attacked(t);
    const [row] = all<{ tag: Buffer; prefix: string; hash: Buffer }>(
      'select tag, prefix, hash from api_keys',
    );
    for (const overlap of [0, 1000]) await rotateApiKey(vault, localCli, key.id, { overlap });
    assert.deepEqual([await faults(), await status(key.raw)], [[], 401]);
    const nothing = 'previous_prefix = null, previous_hash = null, previous_expires_at = null';
    const values = [row?.prefix, row?.hash, row?.tag, key.id];
    sql(`update api_keys set prefix = ?, hash = ?, tag = ?, ${nothing} where id = ?`, ...values);
    assert.equal(await status(key.raw), 401, 'its row is as the vault wrote it once');
    const [event] = all<{ id: number }>("select id from audit_events where action = 'api_key.rotate'");
    assert.deepEqual(await faults(), [`${event?.id} revived`]);
  });
});

suite('an administrator', () => {
  test('is rejected if the row was inserted, or its password hash replaced, outside the vault', async (t) => {
    const { server, vault, sql, doctor } = await attacked(t);
    const hash = await hashPassword(vault.world, new Secret(otherPassword), cheapHash);
    sql("insert into administrators (name, password_hash, created_at) values ('eve', ?, 1)", hash);
    const attempt = (name: string, password: string) =>
      server.get('/api/v1/session', undefined, fromPage('POST', { name, password }));
    assert.equal((await attempt('eve', otherPassword)).status, 401);
    await makeAdministrator(vault, 'alice');
    assert.equal((await attempt('alice', goodPassword)).status, 201);
    sql("update administrators set password_hash = ? where name = 'alice'", hash);
    assert.equal((await attempt('alice', otherPassword)).status, 401);
    assert.equal(await doctor(), 'failed');
  });

  test('has no valid session after the name is changed in the database', async (t) => {
    const { server, vault, sql } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    const page = await signIn(server, 'alice');
    assert.equal((await page.send('GET', '/api/v1/session')).status, 200);
    sql("update administrators set name = 'bob'");
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
  });
});

test('a role that was raised in the database opens nothing, of a person as of a key', async (t) => {
  const { server, vault, sql } = await attacked(t);
  await makeAdministrator(vault, 'alice', goodPassword, 'viewer');
  const page = await signIn(server, 'alice');
  const reader = await makeKey(vault, { name: 'reader', role: 'viewer' });
  const plain = await makeKey(vault, { name: 'plain' });
  const list = (raw: string) => server.get('/api/v1/api-keys', raw);
  assert.equal((await page.send('GET', '/api/v1/api-keys')).status, 200);
  assert.deepEqual([(await list(reader.raw)).status, (await list(plain.raw)).status], [200, 403]);
  sql("update administrators set role = 'admin'");
  sql("update api_keys set role = 'admin'");
  moveGeneration(server.dataDir);
  assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
  assert.deepEqual([(await list(reader.raw)).status, (await list(plain.raw)).status], [403, 403]);
  assert.equal((await server.get('/api/v1/certificates', reader.raw)).status, 401);
});

test('a person whose profiles were removed or added to in the database is signed out, and found', async (t) => {
  const { server, vault, sql, doctor } = await attacked(t);
  for (const name of ['web', 'people']) {
    await addProfile(vault, localCli, 'local-ca', parseInput(createProfileInput, { name }));
  }
  for (const profiles of [null, '[]', '["local-ca/web","local-ca/people"]']) {
    const name = `olga-${String(profiles).length}`;
    await makeAdministrator(vault, name, goodPassword, 'operator', ['local-ca/web']);
    const page = await signIn(server, name);
    assert.equal((await page.send('GET', '/api/v1/session')).status, 200);
    sql('update administrators set profiles = ? where name = ?', profiles, name);
    moveGeneration(server.dataDir);
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401, String(profiles));
    assert.equal(await doctor(), 'failed');
    sql(`update administrators set profiles = '["local-ca/web"]' where name = ?`, name);
    moveGeneration(server.dataDir);
    assert.equal((await page.send('GET', '/api/v1/session')).status, 200);
  }
});

suite('a session', () => {
  test('is rejected if its row was modified, or inserted again with another tag', async (t) => {
    const { server, vault, sql, all } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    const page = await signIn(server, 'alice');
    sql('update sessions set expires_at = expires_at + 1');
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
    sql('update sessions set expires_at = expires_at - 1');
    assert.equal((await page.send('GET', '/api/v1/session')).status, 200);
    const [row] = all<Record<string, unknown>>('select * from sessions');
    sql('delete from sessions');
    const names = Object.keys(row ?? {});
    const values = names.map((name) => (name === 'tag' ? Buffer.alloc(32) : row?.[name]));
    sql(`insert into sessions (${names.join(', ')}) values (${names.map(() => '?').join(', ')})`, ...values);
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
  });

  test('is rejected if its row was reassigned to another administrator', async (t) => {
    const { server, vault, sql } = await attacked(t);
    await makeAdministrator(vault, 'alice');
    await makeAdministrator(vault, 'root');
    const page = await signIn(server, 'alice');
    sql("update sessions set administrator_id = (select id from administrators where name = 'root')");
    assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
  });
});

test('a setup link that was put into the database creates no administrator', async (t) => {
  const { server, vault, dataDir } = await attacked(t);
  const { token, idHash } = createSetupToken(server.world);
  const setUp = () =>
    server.get(
      '/api/v1/setup',
      undefined,
      fromPage('POST', { token: token.expose(), name: 'eve', password: goodPassword }),
    );
  assert(await offerSetup(vault, localCli));
  putOutside(dataDir, 'setup-token-hash', idHash);
  assert.equal((await setUp()).status, 403);
  await makeAdministrator(vault, 'alice');
  await deleteAdministrator(vault, localCli, 'alice', 'goes');
  for (const [name, value] of [
    ['setup-token-hash', idHash],
    ['setup-token-expires-at', 99_999_999_999_999],
    ['setup-token-tag', sha256('x')],
  ] as const) {
    putOutside(dataDir, name, value);
  }
  assert.equal((await setUp()).status, 403);
});

suite('the audit log', () => {
  /** Where the next event is numbered after something else than the mark of the log. */
  const counter = (sql: string) => (testedEngine === 'sqlite' ? `; ${sql}` : '');

  /** What is done to the log, and how it is found before the next event and after it. */
  const attacks: Readonly<Record<string, (db: OutsideDatabase, rows: AuditEventRow[]) => void>> = {
    'a changed event': (db) => db.exec("update audit_events set actor = 'admin:bob' where id = 3"),
    'a changed event with its link and all later links emptied': (db) =>
      db.exec("update audit_events set actor = 'admin:bob', link = x'' where id >= 3"),
    'a removed event': (db) => db.exec('delete from audit_events where id = 3'),
    'deleted newest events with a reset counter': (db) =>
      db.exec(`delete from audit_events where id > 3
        ${counter("update sqlite_sequence set seq = 3 where name = 'audit_events'")}`),
    'deleted newest events with a reset counter and a deleted mark': (db) =>
      db.exec(`delete from audit_events where id > 3; delete from settings where key = 'audit-mark'
        ${counter("update sqlite_sequence set seq = 3 where name = 'audit_events'")}`),
    'the removal of all events, their counter and their mark': (db) =>
      db.exec(`delete from audit_events; delete from settings where key = 'audit-mark'
        ${counter("delete from sqlite_sequence where name = 'audit_events'")}`),
    'an event appended with its hash': (db, rows) => {
      const last = rows.at(-1);
      assert(last);
      const event = { ...last, id: last.id + 1, actor: 'admin:bob' };
      const link = linkOf(last.link.subarray(0, 32), event);
      const row = { ...event, link: Buffer.concat([link, last.link.subarray(32)]) };
      const columns = Object.keys(row);
      db.prepare(
        `insert into audit_events (${columns.join(', ')}) values (${columns.map(() => '?').join(', ')})`,
      ).run(...Object.values(row));
    },
    'a chain recomputed with correct hashes': (db, rows) => {
      let previous: Buffer = Buffer.alloc(32);
      const update = db.prepare('update audit_events set actor = ?, link = ? where id = ?');
      for (const row of rows) {
        const event = { ...row, actor: 'admin:bob' };
        previous = linkOf(previous, event);
        update.run(event.actor, previous, row.id);
      }
    },
  };

  for (const [what, attack] of Object.entries(attacks)) {
    test(`detects ${what} immediately, after the next event and after a restart`, async (t) => {
      const { server, key, dataDir, all, status, faults } = await attacked(t);
      assert.deepEqual(await faults(), []);
      const rows = all<AuditEventRow>('select * from audit_events order by id');
      outside(dataDir, (db) => attack(db, rows));
      assert.notDeepEqual(await faults(), []);
      assert.equal(await status(key.raw), 200, 'certificates stay available');
      assert.equal(await status(key.raw), 200);
      assert.notDeepEqual(await faults(), [], 'the next events do not cover it');
      await server.stop();
      await server.close();
      const { vault } = await testVault(t, { dataDir, world: server.world });
      assert.notDeepEqual((await verifyChain(vault)).faults, [], 'nor does a restart');
    });
  }
});

test('a vault does not open after its master key check was removed from the database', async (t) => {
  const { server, sql, dataDir } = await attacked(t);
  await server.stop();
  await server.close();
  sql("delete from settings where key = 'master-key-check'");
  await assert.rejects(
    openVault(settingsFor(dataDir), new TestWorld(), 'create'),
    /lacks the check of its master key/,
  );
});

const keepsMark = ofFiles('its mark, which another process cannot put back');

test(
  'a vault does not open with a restored master key check from before rows were tagged',
  keepsMark,
  async (t) => {
    const { server, vault, sql, dataDir } = await attacked(t);
    await updateMark(vault);
    const owner = {
      table: 'settings',
      record: 'master-key-check',
      purpose: 'seal: master key check',
    } as const;
    const before = new Secret(Buffer.from('this is the master key of this vault'));
    const blob = seal(vault.keyring.current, server.world, owner, before);
    await server.stop();
    await server.close();
    sql("update settings set value = ? where key = 'master-key-check'", blob);
    await assert.rejects(
      openVault(settingsFor(dataDir), new TestWorld(), 'create'),
      /vault\.db is older than its mark/,
    );
  },
);
