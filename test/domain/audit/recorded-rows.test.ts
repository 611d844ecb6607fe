/**
 * The records of rows in the audit log through the life of a vault: changes, a second process, retention, an upgrade,
 * key rotation.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { requireIntegrity } from '../../../src/base/integrity.ts';
import { Secret } from '../../../src/base/secret.ts';
import { hashIn, rowTagIn } from '../../../src/db/audit/audit-chain.ts';
import { listTaggedRows } from '../../../src/db/audit/row-list.ts';
import { changeApiKey } from '../../../src/domain/access/api-key-change.ts';
import { updateApiKeyInput } from '../../../src/domain/access/api-key-inputs.ts';
import { rotateApiKey } from '../../../src/domain/access/api-key-rotation.ts';
import { deleteApiKey, revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { Passwords } from '../../../src/domain/access/passwords.ts';
import { Sessions } from '../../../src/domain/access/sessions.ts';
import { SignIn } from '../../../src/domain/access/sign-in.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { jsonLine } from '../../../src/domain/audit/audit-log.ts';
import { pruneAuditLog } from '../../../src/domain/audit/audit-retention.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { parseInput } from '../../../src/domain/inputs.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeOlder } from '../../harness/database/older-vault.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { eventsOf, makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { cheapHash, goodPassword, makeAdministrator } from '../../harness/http/sign-in-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const day = 86_400_000;

async function filled(t: TestContext) {
  const opened = await testVault(t);
  const { vault } = opened;
  await makeCertificate(vault, 'mine');
  await makeCertificate(vault, 'other');
  const key = await makeKey(vault, { certificates: ['mine', 'other'], scopes: ['private_keys:read'] });
  await makeAdministrator(vault, 'alice');
  return { ...opened, key };
}

const faultsOf = async (vault: Vault) => (await verifyChain(vault)).faults.map(({ message }) => message);

const statesOf = async ({ db }: Vault) =>
  (await listTaggedRows(db.reader, requireIntegrity(db))).map(
    ({ resource, state }) => `${resource} ${state}`,
  );

const change = (changes: object) => parseInput(updateApiKeyInput, changes);

test('every change of a protected row is recorded, also without an audit event of its own', async (t) => {
  const { vault, world, key } = await filled(t);
  await changeApiKey(vault, localCli, key.id, change({ allowed_networks: ['192.0.2.0/24'] }));
  await rotateApiKey(vault, localCli, key.id, { overlap: 1000 });
  // The allowlist of the key gets shorter.
  await deleteCertificate(vault, localCli, 'other', { force: true });
  const gone = await makeKey(vault, { name: 'gone' });
  await revokeApiKey(vault, localCli, gone.id);
  assert.deepEqual(await faultsOf(vault), []);
  await deleteApiKey(vault, localCli, gone.id);
  // At sign-in, a hash with other parameters is replaced.
  const passwords = new Passwords(world, { ...cheapHash, passes: 2 });
  const signIn = new SignIn(vault, passwords, new Sessions(vault), { howToRecord: () => 'in full' });
  const signedIn = await signIn.signIn(
    { name: 'alice', password: new Secret(goodPassword) },
    { actor: { name: 'unknown' }, userAgent: undefined },
  );
  assert('token' in signedIn);
  assert.equal((await signIn.sessions.find(signedIn.token.expose()))?.name, 'alice');
  assert.deepEqual(await faultsOf(vault), []);
  assert.deepEqual(await statesOf(vault), [
    `api-key:${key.id} current`,
    'administrator:alice current',
    'session:1 current',
  ]);
});

test('alternating changes by two processes verify without faults in both', async (t) => {
  const { vault, world, dataDir, key } = await filled(t);
  const other = await testVault(t, { dataDir, world });
  for (const [index, one] of [vault, other.vault, vault, other.vault].entries()) {
    await changeApiKey(one, localCli, key.id, change({ name: `name${index}` }));
  }
  assert.deepEqual([await faultsOf(vault), await faultsOf(other.vault)], [[], []]);
});

test('row records survive the pruning of their events, and older rows are still reported', async (t) => {
  const { vault, world, dataDir, key } = await filled(t);
  const sql = (text: string, ...values: unknown[]) =>
    outside(dataDir, (db) => db.prepare(text).run(...values));
  const before = outside(dataDir, (db) => db.prepare('select tag, scopes from api_keys').get()) as {
    tag: Buffer;
    scopes: string;
  };
  await changeApiKey(vault, localCli, key.id, change({ scopes: ['certificates:read'] }));
  const prune = async () => {
    let isOver = false;
    const pruning = pruneAuditLog(vault, 30 * day).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await Promise.race([pruning, world.sleeping(1)]);
      world.advance(50);
    }
    return pruning;
  };
  world.advance(40 * day);
  assert(((await prune()) ?? 0) > 0);
  assert.deepEqual(await faultsOf(vault), []);
  const states = [`api-key:${key.id} current`, 'administrator:alice current'];
  assert.deepEqual(await statesOf(vault), states);
  sql('update api_keys set scopes = ?, tag = ?', before.scopes, before.tag);
  assert.deepEqual(await statesOf(vault), [`api-key:${key.id} old`, 'administrator:alice current']);
  world.advance(40 * day);
  assert(((await prune()) ?? 0) > 0);
  // What the log recorded is recorded again, not what stands in the row.
  assert.deepEqual(await statesOf(vault), [`api-key:${key.id} old`, 'administrator:alice current']);
  assert.equal((await faultsOf(vault)).length, 1);
});

test('the rows of an earlier version are recorded at the first start, once', async (t) => {
  const { vault, world, dataDir, key, close } = await filled(t);
  await makeOlder(vault);
  assert.equal((await faultsOf(vault)).length, 2);
  await close();
  const upgraded = await testVault(t, { dataDir, world });
  const records = () => eventsOf(dataDir, 'integrity.row').map(({ resource }) => resource);
  assert.deepEqual(records(), [`api-key:${key.id}`, 'administrator:alice', 'vault']);
  assert.deepEqual(await faultsOf(upgraded.vault), []);
  const tag = outside(dataDir, (db) => db.prepare('select tag from api_keys').pluck().get()) as Buffer;
  // A row of the earlier version that is put back later has a valid tag and no record.
  outside(dataDir, (db) => db.prepare('delete from audit_events where length(link) > 64').run());
  await upgraded.close();
  const again = await testVault(t, { dataDir, world });
  assert.deepEqual(records(), ['vault']);
  assert.deepEqual(await statesOf(again.vault), [
    `api-key:${key.id} unrecorded`,
    'administrator:alice unrecorded',
  ]);
  await assert.rejects(
    changeApiKey(again.vault, localCli, key.id, change({ name: 'x' })),
    /modified outside/,
  );
  assert.equal(tag.length, 32);
});

test('JSON lines of exports and of the audit file do not contain the tags of recorded rows', async (t) => {
  const { vault } = await filled(t);
  const rows = await vault.db.reader.selectFrom('audit_events').selectAll().execute();
  const recorded = rows.filter(({ link }) => rowTagIn(link) !== undefined);
  assert.equal(recorded.length, 2);
  for (const event of recorded) {
    const tag = rowTagIn(event.link)?.toString('hex') ?? '';
    const line = jsonLine(event);
    assert(line.includes(hashIn(event.link).toString('hex')) && !line.includes(tag));
  }
});
