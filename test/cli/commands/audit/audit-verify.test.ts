/** `vault audit verify` and `checkpoint` as a cron job uses them: exit codes, words, JSON, and a modified log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outside } from '../../../harness/database/outside-database.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';

type Report = { whole: boolean; events: number; fault_count: number; faults: { id: number; kind: string }[] };

async function prepared(t: Parameters<typeof commandLine>[0]) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  await line.done('api-key', 'create', '--name=k', '--scope=certificates:read', '--certificate=web');
  const checkpoint = line.file((await line.done('audit', 'checkpoint')).stdout, 'checkpoint.txt');
  await line.done('api-key', 'revoke', '--id=1');
  return { ...line, checkpoint };
}

test('a whole log verifies, also against a checkpoint, with exit code 0', async (t) => {
  const { done, json, checkpoint } = await prepared(t);
  const { stdout } = await done('audit', 'verify', '--checkpoint', checkpoint);
  assert.match(
    stdout,
    /^The audit log is intact: (\d+) events, from 1 to \1\.\nMatches the checkpoint of event \d+, 20\S+Z\.\nLast hash: [0-9a-f]{64}\n$/,
  );
  const report = await json<Report>('audit', 'verify', '--checkpoint', checkpoint);
  assert.deepEqual([report.whole, report.fault_count, report.faults], [true, 0, []]);
  assert.match((await done('audit', 'public-key')).stdout, /^-----BEGIN PUBLIC KEY-----\n/);
});

test('a modified event is reported with exit code 1', async (t) => {
  const { run, data } = await prepared(t);
  outside(data, (db) => db.exec("update audit_events set actor = 'admin:eve' where id = 2"));
  const { code, stdout, stderr } = await run('audit', 'verify');
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^FAULT: event 2 was modified, or does not follow the previous event\nVerified \d+ events, from 1 to/,
  );
  assert.match(
    stderr,
    /^vault: the audit log failed verification\n {2}Someone with write access to vault\.db/,
  );
  const told = await run('audit', 'verify', '--json');
  assert.equal(told.code, 1);
  const { whole, faults } = JSON.parse(told.stdout) as Report;
  assert.deepEqual([whole, faults.map(({ id, kind }) => `${id} ${kind}`)], [false, ['2 changed']]);
});

test('an unchained event is a fault with a hint that an older version may have written it', async (t) => {
  const { run, data } = await prepared(t);
  outside(data, (db) => db.exec("update audit_events set link = x'' where id = 2"));
  const { code, stdout, stderr } = await run('audit', 'verify');
  assert.equal(code, 1);
  assert.match(stdout, /^FAULT: event 2 is not chained: an older version of the vault may have written it\n/);
  assert.match(stderr, /\n {2}If an older version of "vault serve" still ran after an upgrade, restart it /);
  assert.match(stderr, /\n {2}Otherwise someone with write access to vault\.db changed it\. /);
});

test('a truncated log is detected with and without a checkpoint', async (t) => {
  const { run, data, checkpoint } = await prepared(t);
  outside(data, (db) =>
    db.exec(
      "delete from audit_events where id > 2; update sqlite_sequence set seq = 2 where name = 'audit_events'",
    ),
  );
  const alone = await run('audit', 'verify');
  assert.equal(alone.code, 1);
  assert.match(alone.stdout, /^FAULT: events 3 to \d+ are missing at the end\n/);
  const { code, stdout } = await run('audit', 'verify', '--checkpoint', checkpoint);
  assert.equal(code, 1);
  assert.match(stdout, /^FAULT: the log ends at event 2, before the checkpoint of event \d+\n/m);
});

test('a modified checkpoint is rejected; --new-key changes the public key and keeps old checkpoints valid', async (t) => {
  const { done, refused, checkpoint, file } = await prepared(t);
  const text = (await done('audit', 'checkpoint')).stdout;
  const forged = file(text.replace('events ', 'events 9'), 'forged.txt');
  await refused(
    ['audit', 'verify', '--checkpoint', forged],
    /^vault: the signature of .*forged\.txt is invalid: the checkpoint was modified\n/,
  );
  const key = (await done('audit', 'public-key')).stdout;
  const next = file((await done('audit', 'checkpoint', '--new-key')).stdout, 'next.txt');
  assert.notEqual((await done('audit', 'public-key')).stdout, key);
  await done('audit', 'verify', '--checkpoint', checkpoint, '--checkpoint', next);
});

test('master key rotation keeps checkpoints valid and their public key unchanged', async (t) => {
  const { done, checkpoint, file } = await prepared(t);
  const key = (await done('audit', 'public-key')).stdout;
  await done('master-key', 'rotate');
  assert.equal((await done('audit', 'public-key')).stdout, key);
  const after = file((await done('audit', 'checkpoint')).stdout, 'after.txt');
  const { stdout } = await done('audit', 'verify', '--checkpoint', checkpoint, '--checkpoint', after);
  assert.equal(stdout.match(/^Matches the checkpoint of event \d+/gm)?.length, 2);
});
