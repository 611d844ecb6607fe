/** The log lines about private CAs that expire: at the start and once a day, no more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour } from '../../src/base/duration.ts';
import { runPrivateCaLog } from '../../src/jobs/periodic-jobs.ts';
import { caExpiry, exportRoot, rootExpiry, untilLeft } from '../harness/ca/private-ca-fixtures.ts';
import { testVault } from '../harness/test-vault.ts';

test('an expiring root is logged at the start and every day, with its expiry and the command', async (t) => {
  const opened = await testVault(t);
  const { vault, world, log } = opened;
  await untilLeft(opened, 'local-ca', 364.5 * day);
  const stop = new AbortController();
  const job = runPrivateCaLog(vault, stop.signal);
  await world.sleeping(1);
  const expires_at = (await rootExpiry(vault, 'local-ca')).text;
  const soon = {
    ...{ level: 'warn', private_ca: 'local-ca', expires_at, fix: 'vault ca rotate' },
    message: 'root of private CA expires soon',
  };
  assert.deepEqual(
    log.lines.map((line) => JSON.parse(line)),
    [soon],
  );
  for (let hours = 0; hours < 48; hours += 1) {
    world.advance(hour);
    await world.sleeping(1);
  }
  assert.equal(log.lines.length, 3);
  world.advance(365 * day);
  await world.sleeping(1);
  assert.deepEqual(JSON.parse(log.lines[3] ?? ''), {
    ...{ ...soon, fix: 'vault issuer add --type local-ca --name NAME' },
    message: 'root of private CA has expired',
  });
  stop.abort();
  await job;
});

test('an expiring intermediate is logged after its root key was exported, and a valid root is not', async (t) => {
  const opened = await testVault(t);
  const { vault, world, log } = opened;
  const stop = new AbortController();
  const job = runPrivateCaLog(vault, stop.signal);
  await world.sleeping(1);
  await exportRoot(vault, 'local-ca');
  world.advance(day);
  await world.sleeping(1);
  assert.deepEqual(log.lines, []);
  await untilLeft(opened, 'local-ca', 300 * day, 'intermediate');
  await world.sleeping(1);
  const { text: expires_at } = await caExpiry(vault, 'local-ca', 'intermediate');
  assert.deepEqual(
    log.lines.map((line) => JSON.parse(line)),
    [
      {
        ...{ level: 'warn', private_ca: 'local-ca', expires_at },
        fix: 'vault ca import-root-key FILE --passphrase-file FILE --issuer local-ca',
        message: 'intermediate of private CA expires soon',
      },
    ],
  );
  stop.abort();
  await job;
});

test('a database error is logged and retried an hour later', async (t) => {
  const opened = await testVault(t);
  const { vault, world, log } = opened;
  await untilLeft(opened, 'local-ca', 300 * day);
  let isBroken = true;
  const db = new Proxy(vault.db, {
    get: (target, name) => {
      if (name === 'reader' && isBroken) throw new Error('the disk is gone');
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const stop = new AbortController();
  const job = runPrivateCaLog({ ...vault, db }, stop.signal);
  await world.sleeping(1);
  assert.match(log.lines[0] ?? '', /"level":"error".*the disk is gone/);
  isBroken = false;
  world.advance(hour);
  await world.sleeping(1);
  assert.equal(log.lines.length, 2);
  assert.match(log.lines[1] ?? '', /root of private CA expires soon/);
  stop.abort();
  await job;
});
