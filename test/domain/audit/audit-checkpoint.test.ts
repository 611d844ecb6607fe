/** Checkpoints: what they say, who can check them, and which ones do not count. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { publicKeyId, publicKeyPem } from '../../../src/crypto/ed25519.ts';
import { hashIn } from '../../../src/db/audit/audit-chain.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import {
  checkpointKey,
  makeCheckpoint,
  readCheckpoint,
  replaceCheckpointKey,
} from '../../../src/domain/audit/audit-checkpoint.ts';
import { outside } from '../../harness/database/outside-database.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

test('a checkpoint contains the last event of the log, and its key is recorded once', async (t) => {
  const { vault, dataDir, world } = await testVault(t);
  const text = await makeCheckpoint(vault, localCli);
  const last = outside(dataDir, (db) =>
    db.prepare('select id, link from audit_events order by id desc limit 1').get(),
  ) as { id: number; link: Buffer };
  const { id } = last;
  const link = hashIn(last.link);
  const keyId = publicKeyId(await checkpointKey(vault, localCli));
  assert.match(
    text,
    new RegExp(
      `^vault audit checkpoint 1\nevent ${id}\nhash ${link.toString('hex')}\nevents ${id}\n` +
        `at 2026-11-21T12:00:00Z\nkey ${keyId}\nsignature [A-Za-z0-9+/]{86}==\n$`,
    ),
  );
  assert.deepEqual(await readCheckpoint(vault, text, 'it'), { id, link, events: id, at: world.now() });
  assert.equal(await makeCheckpoint(vault, localCli), text);
  const [event, ...more] = eventsOf(dataDir, 'audit.key');
  assert.deepEqual([event?.actor, event?.resource, more], ['local-cli', `audit-key:${keyId}`, []]);
  const publicKey = Buffer.from(String(event?.detail.public_key), 'base64');
  assert.equal(publicKeyId(publicKey), keyId);
});

test('two concurrent first checkpoints are signed with one key', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const [one, other] = await Promise.all([makeCheckpoint(vault, localCli), makeCheckpoint(vault, localCli)]);
  assert.equal(one, other);
  assert.equal(eventsOf(dataDir, 'audit.key').length, 1);
});

test('a checkpoint can be verified with the public key and OpenSSL alone', needs('openssl'), async (t) => {
  const { vault } = await testVault(t);
  const text = await makeCheckpoint(vault, localCli);
  const dir = tempDir(t);
  writeFileSync(join(dir, 'key.pem'), publicKeyPem(await checkpointKey(vault, localCli)));
  writeFileSync(join(dir, 'checkpoint'), text);
  const script = `head -n 6 checkpoint > text
    sed -n 's/^signature //p' checkpoint | base64 -d > signature
    openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in text -sigfile signature`;
  const check = () => execFileSync('/bin/sh', ['-c', script], { cwd: dir, encoding: 'utf8', stdio: 'pipe' });
  assert.match(check(), /Signature Verified Successfully/);
  writeFileSync(join(dir, 'checkpoint'), text.replace('events ', 'events 1'));
  assert.throws(check);
});

test('replacing the checkpoint key keeps old checkpoints valid and deletes the old private key', async (t) => {
  const { vault, dataDir } = await testVault(t);
  const before = await makeCheckpoint(vault, localCli);
  await replaceCheckpointKey(vault, localCli);
  const after = await makeCheckpoint(vault, localCli);
  const keyOf = (text: string) => /^key (.*)$/m.exec(text)?.[1];
  assert.notEqual(keyOf(before), keyOf(after));
  const [old, current] = [await readCheckpoint(vault, before, 'a'), await readCheckpoint(vault, after, 'b')];
  assert(old.id < current.id);
  const sealed = outside(dataDir, (db) =>
    db.prepare('select sealed_private_key is null from audit_keys order by id').pluck().all(),
  );
  assert.deepEqual(sealed, [1, 0]);
});

test('a checkpoint that is modified, malformed or from another vault is rejected with the reason', async (t) => {
  const { vault } = await testVault(t);
  const text = await makeCheckpoint(vault, localCli);
  const read = (changed: string) => readCheckpoint(vault, changed, 'cp.txt');
  assert((await read(text.replaceAll('\n', '\r\n'))).id > 0, 'mail programs do that');
  const digit = (one: string) => (one === '1' ? '2' : '1');
  for (const changed of [
    text.replace(/event (\d+)/, 'event 1$1'),
    text.replace(/events (\d+)/, 'events 1$1'),
    text.replace(/hash (.)/, (_, one: string) => `hash ${digit(one)}`),
    text.replace('2026-11-21', '2026-11-20'),
    text.replace(/signature .{4}/, 'signature AAAA'),
  ]) {
    await assert.rejects(
      read(changed),
      /^OperatorError: the signature of cp\.txt is invalid: the checkpoint was modified$/,
    );
  }
  const other = await makeCheckpoint((await testVault(t)).vault, localCli);
  await assert.rejects(read(other), /cp\.txt is signed with an unknown key \([0-9a-f]{16}\)/);
  for (const none of [
    '',
    'x',
    text.slice(0, -20),
    text.replace('checkpoint 1', 'checkpoint 2'),
    `x\n${text}`,
  ]) {
    await assert.rejects(read(none), /cp\.txt is not an audit checkpoint/);
  }
});

test('makeCheckpoint rejects a newest event that the vault did not write', async (t) => {
  const { vault, dataDir } = await testVault(t);
  await makeCheckpoint(vault, localCli);
  outside(dataDir, (db) =>
    db.exec(`insert into audit_events (id, at, actor, action, resource, detail)
      select max(id) + 1, 1, 'a', 'b', 'c', '{}' from audit_events`),
  );
  await assert.rejects(
    makeCheckpoint(vault, localCli),
    /the newest event of the audit log was not written by this vault/,
  );
});
