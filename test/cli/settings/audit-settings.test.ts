/** The settings about the audit log: kept for ever unless said otherwise, and refused by name where wrong. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const day = 86_400_000;

test('the audit log is kept forever unless VAULT_AUDIT_RETENTION is set', async (t) => {
  const dir = { 'data-dir': tempDir(t) };
  const kept = async (environment: Record<string, string>) =>
    (await readSettings(dir, environment)).audit.keepFor;
  assert.equal(await kept({}), undefined);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: 'forever' }), undefined);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: '400d' }), 400 * day);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: '2y' }), 730 * day);
});

for (const value of ['0d', '12h', '30', 'never', '-1d', '1w']) {
  test(`--audit-retention ${value} is rejected`, async (t) => {
    await assert.rejects(
      readSettings({ 'data-dir': tempDir(t), 'audit-retention': value }, {}),
      /--audit-retention: ".*" is not a valid retention/,
    );
  });
}

test('syslog URLs are parsed, and a relative audit file is resolved', async (t) => {
  const dir = { 'data-dir': tempDir(t) };
  const audit = async (environment: Record<string, string>) => (await readSettings(dir, environment)).audit;
  const none = await audit({});
  assert.deepEqual([none.file, none.syslog, none.syslogCaFile], [undefined, undefined, undefined]);
  const { file, syslogCaFile } = await audit({
    VAULT_AUDIT_FILE: 'a.jsonl',
    VAULT_AUDIT_SYSLOG_CA: '/ca.pem',
  });
  assert.deepEqual([file, syslogCaFile], [resolve('a.jsonl'), '/ca.pem']);
  for (const [url, expected] of [
    ['tcp://logs.example.com:601', { transport: 'tcp', host: 'logs.example.com', port: 601 }],
    ['tls://[2001:db8::1]:6514', { transport: 'tls', host: '2001:db8::1', port: 6514 }],
    ['udp://192.0.2.1:514', { transport: 'udp', host: '192.0.2.1', port: 514 }],
    ['unix:/run/syslog', { transport: 'unix', path: '/run/syslog' }],
    ['unix:///run/syslog', { transport: 'unix', path: '/run/syslog' }],
  ] as const) {
    assert.deepEqual((await audit({ VAULT_AUDIT_SYSLOG: url })).syslog, { url, ...expected });
  }
});

for (const value of [
  'logs.example.com',
  'tcp://logs.example.com',
  'http://x:1',
  'tcp://x:0',
  'tcp://x:65536',
  'unix:x',
  'tcp://a:b@x:1',
]) {
  test(`--audit-syslog ${value} is rejected`, async (t) => {
    await assert.rejects(
      readSettings({ 'data-dir': tempDir(t), 'audit-syslog': value }, {}),
      /--audit-syslog: ".*" is not a syslog server/,
    );
  });
}
