/** Private CAs that expire are announced to a real receiver: once for each level, until they are renewed or removed. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { removeIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import { notifyPrivateCas } from '../../../src/domain/notifications/notification-private-ca.ts';
import { localCa } from '../../../src/domain/private-ca/local-ca.ts';
import { rotateRoot } from '../../../src/domain/private-ca/rotation.ts';
import {
  addStagingCa,
  caExpiry,
  exportRoot,
  importRoot,
  rootExpiry,
  untilLeft,
} from '../../harness/ca/private-ca-fixtures.ts';
import { webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { addWebhook, deliverAll } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

async function prepared(t: TestContext, channel: Record<string, unknown> = {}) {
  const opened = await testVault(t);
  const { received, url } = await webhookReceiver(t);
  await addWebhook(opened.vault, url, channel);
  /** Looks at the CAs, delivers what is due, and returns what arrived. */
  const arrived = async () => {
    const before = received.length;
    await notifyPrivateCas(opened.vault);
    await deliverAll(opened.vault);
    return received.slice(before).map(({ json }) => json);
  };
  return { ...opened, arrived };
}

type Prepared = Awaited<ReturnType<typeof prepared>>;

const summary = (messages: Awaited<ReturnType<Prepared['arrived']>>) =>
  messages.map(({ type, data }) => `${type} ${data.private_ca} ${data.role} ${data.urgency}`);

test('a root is announced a year ahead, then 180, 90, 30 and 7 days before and at its expiry, once each', async (t) => {
  const opened = await prepared(t);
  await untilLeft(opened, 'local-ca', 370 * day);
  const seen: [left: number, urgency: unknown][] = [];
  for (let left = 370; left >= -30; left -= 1) {
    for (const { data } of await opened.arrived()) seen.push([left, data.urgency]);
    assert.deepEqual(await opened.arrived(), [], 'a second look says nothing');
    opened.world.advance(day);
  }
  assert.deepEqual(seen, [
    [364, 'near'],
    [179, 'near'],
    [89, 'near'],
    [29, 'emergency'],
    [6, 'emergency'],
    [0, 'over'],
  ]);
});

test('the message contains the CA, the expiry and the fix command', async (t) => {
  const opened = await prepared(t);
  await addStagingCa(opened.vault);
  const end = (await rootExpiry(opened.vault, 'staging-ca')).text;
  await untilLeft(opened, 'staging-ca', 364 * day);
  const [message] = (await opened.arrived()).filter(({ data }) => data.private_ca === 'staging-ca');
  assert.equal(message?.type, 'private_ca.expiring');
  assert.equal(message.subject, 'private CA staging-ca: root expires in 364 days');
  assert.deepEqual(message.data, {
    private_ca: 'staging-ca',
    role: 'root',
    expires_at: end,
    urgency: 'near',
    advice: 'Replace it while clients trust it, and install the new root on them.',
    fix: 'vault ca rotate --issuer staging-ca',
  });
  assert.equal(
    message.text,
    `The root of private CA staging-ca expires in 364 days.

  Valid until:   ${end} (in 364 days)

Replace it while clients trust it, and install the new root on them.

  vault ca rotate --issuer staging-ca

-- 
Certificate Vault
`,
  );
});

test('after the root was rotated, its alarm ends with one message, and the next root begins at the first level', async (t) => {
  const opened = await prepared(t);
  const { vault, world } = opened;
  await untilLeft(opened, 'local-ca', 20 * day);
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca root emergency']);
  await rotateRoot(vault, localCli, await localCa(vault.db.reader));
  const end = (await rootExpiry(vault, 'local-ca')).text;
  const [message, ...others] = await opened.arrived();
  assert.deepEqual(others, []);
  assert.equal(message?.type, 'private_ca.recovered');
  assert.equal(message.subject, 'private CA local-ca: renewed');
  assert.equal(message.data.expires_at, end);
  world.advance(minute);
  assert.deepEqual(await opened.arrived(), []);
  await untilLeft(opened, 'local-ca', 364 * day);
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca root near']);
});

test('an intermediate is announced when the key of its root was exported, until the next one is created', async (t) => {
  const opened = await prepared(t);
  const { vault } = opened;
  await untilLeft(opened, 'local-ca', 300 * day, 'intermediate');
  assert.deepEqual(await opened.arrived(), [], 'with the key, the vault renews it');
  // An export replaces an intermediate that expires within four years.
  const file = await exportRoot(vault, 'local-ca');
  assert.deepEqual(await opened.arrived(), []);
  const end = (await caExpiry(vault, 'local-ca', 'intermediate')).text;
  await untilLeft(opened, 'local-ca', 364 * day, 'intermediate');
  const [message] = await opened.arrived();
  assert.equal(message?.subject, 'private CA local-ca: intermediate expires in 364 days');
  assert.equal(message.data.expires_at, end);
  assert.match(message.text, /^ {2}vault ca import-root-key FILE --passphrase-file FILE --issuer local-ca$/m);
  for (const line of message.text.split('\n')) assert(line.length <= 78, line);
  await untilLeft(opened, 'local-ca', 29 * day, 'intermediate');
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca intermediate emergency']);
  await importRoot(vault, 'local-ca', file);
  const [next, ...others] = await opened.arrived();
  assert.equal(
    next?.subject,
    'private CA local-ca: root expires in 329 days',
    'then the root is the next to expire',
  );
  assert.deepEqual(others, []);
  await exportRoot(vault, 'local-ca');
  assert.deepEqual(await opened.arrived(), []);
});

test('an intermediate that was renewed while its root lasts ends the alarm', async (t) => {
  const opened = await prepared(t);
  const { vault } = opened;
  const file = await exportRoot(vault, 'local-ca');
  await untilLeft(opened, 'local-ca', 29 * day, 'intermediate');
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca intermediate emergency']);
  await importRoot(vault, 'local-ca', file);
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.recovered local-ca root undefined']);
});

test('under an external root, only the intermediate is announced, with the vault ca csr command', async (t) => {
  const opened = await prepared(t);
  await opened.vault.db.write(async (writer) => {
    const company = { is_external: 1, sealed_private_key: Buffer.alloc(0), not_after: opened.world.now() };
    await writer.updateTable('ca_certificates').set(company).where('role', '=', 'root').execute();
  });
  assert.deepEqual(await opened.arrived(), []);
  await untilLeft(opened, 'local-ca', 364 * day, 'intermediate');
  const [message, ...others] = await opened.arrived();
  assert.deepEqual(others, []);
  assert.equal(message?.subject, 'private CA local-ca: intermediate expires in 364 days');
  assert.match(message.text, /^ {2}vault ca csr --issuer local-ca --out vault\.csr$/m);
  for (const line of message.text.split('\n')) assert(line.length <= 78, line);
});

test('with certificate lifetimes of 900 days, the intermediate of an exported root is announced 900 days ahead', async (t) => {
  const opened = await prepared(t);
  const { vault } = opened;
  await exportRoot(vault, 'local-ca');
  await vault.db.write(async (writer) => {
    await writer
      .insertInto('private_cas')
      .values({
        issuer_id: 1,
        lifetime: 900 * day,
        path_length: 1,
        permit_domains: null,
        permit_ips: null,
        common_name: null,
        key_type: null,
      })
      .execute();
  });
  await untilLeft(opened, 'local-ca', 901 * day, 'intermediate');
  assert.deepEqual(await opened.arrived(), []);
  await untilLeft(opened, 'local-ca', 899 * day, 'intermediate');
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca intermediate near']);
  await untilLeft(opened, 'local-ca', 364 * day, 'intermediate');
  assert.deepEqual(await opened.arrived(), []);
});

test('each CA has its own alarm, and that of a removed one ends without a message', async (t) => {
  const opened = await prepared(t);
  const { vault, world } = opened;
  world.advance(2 * day);
  await addStagingCa(vault);
  await untilLeft(opened, 'local-ca', 364 * day);
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring local-ca root near']);
  world.advance(2 * day);
  assert.deepEqual(summary(await opened.arrived()), ['private_ca.expiring staging-ca root near']);
  await removeIssuer(vault, localCli, 'staging-ca');
  assert.deepEqual(await opened.arrived(), []);
  const alarms = await vault.db.reader.selectFrom('notification_alarms').select('event').execute();
  assert.equal(alarms.length, 1);
});

test('a channel without the event gets no message, and certificate filters do not apply', async (t) => {
  const opened = await prepared(t, { events: ['certificate.expiring'] });
  await untilLeft(opened, 'local-ca', 364 * day);
  assert.deepEqual(await opened.arrived(), []);
  const filtered = await prepared(t, { certificates: ['web*'] });
  await untilLeft(filtered, 'local-ca', 364 * day);
  assert.equal((await filtered.arrived()).length, 1);
});
