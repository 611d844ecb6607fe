/**
 * `vault serve` and `vault doctor` with a private CA whose root expires: the log, a real receiver and the doctor say
 * so.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { eventually } from '../../harness/eventually.ts';
import { webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { serve } from '../../harness/processes/vault-process.ts';

const day = 86_400_000;

test('a server logs an expiring root once and notifies of it, and doctor prints the command', async (t) => {
  const { data, done, run } = commandLine(t);
  const { url, received } = await webhookReceiver(t);
  await done('notification', 'add', 'webhook', '--channel', 'ops', '--url', url);
  const expiry = Math.floor((Date.now() + 300 * day) / 1000) * 1000;
  const database = new BetterSqlite3(join(data, 'vault.db'));
  database.prepare("update ca_certificates set not_after = ? where role = 'root'").run(expiry);
  database.close();
  const server = await serve(t, data);
  const { json } = await eventually('the notification', () => received[0]);
  assert.equal(json.type, 'private_ca.expiring');
  assert.equal(json.subject, 'private CA local-ca: root expires in 299 days');
  assert.match(json.text, /^ {2}vault ca rotate$/m);
  const expires_at = new Date(expiry).toISOString().replace('.000Z', 'Z');
  const lines = await eventually('the line', () => {
    const found = server.log().match(/^.*root of private CA expires soon.*$/gm);
    return found ?? undefined;
  });
  assert.equal(lines.length, 1);
  const { level, private_ca, fix, ...line } = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  assert.deepEqual(
    [level, private_ca, line.expires_at, fix],
    ['warn', 'local-ca', expires_at, 'vault ca rotate'],
  );
  assert.equal((await server.end()).code, 0);
  assert.equal(received.length, 1);
  const { stdout } = await run('doctor', '--offline');
  assert.ok(stdout.includes(`local-ca: its root expires at ${expires_at}`), stdout);
  assert.match(stdout, /Fix: vault ca rotate$/m);
});
