/** `--allow-outbound`: how it is written, and what commands say where it is missing. */
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readSettings } from '../../../src/cli/settings/settings.ts';
import { scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { webhookReceiver } from '../../harness/http/webhook-receiver.ts';
import { smtpServer } from '../../harness/notifications/smtp-server.ts';
import { commandLine } from '../../harness/processes/command-line.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('--allow-outbound accepts addresses and networks with an optional port, and rejects other values', async (t) => {
  const dir = tempDir(t);
  const read = async (value: string) => {
    const { allowOutbound } = await readSettings({ 'data-dir': dir, 'allow-outbound': value }, {});
    return allowOutbound?.map(({ network, port }) => `${network.text} ${port ?? '*'}`);
  };
  assert.deepEqual(await read('127.0.0.1:25, [::1]:53,127.0.0.0/8, fe80::/10'), [
    ...['127.0.0.1 25', '::1 53', '127.0.0.0/8 *', 'fe80::/10 *'],
  ]);
  assert.deepEqual(await read('none'), []);
  assert.equal(await read(''), undefined);
  for (const value of ['localhost', '127.0.0.1,', '127.0.0.1:70000', 'none,127.0.0.1', '0.0.0.0/0', '::/0']) {
    await assert.rejects(read(value), /^OperatorError: --allow-outbound: /, value);
  }
});

test('a CA, a webhook and a mail server on loopback are rejected until allow_outbound lists them', async (t) => {
  const ca = await scriptedAcme(t);
  const receiver = await webhookReceiver(t);
  const relay = await smtpServer(t, { security: 'none' });
  const strict = commandLine(t, { environment: { VAULT_ALLOW_OUTBOUND: undefined } });
  const { port } = new URL(ca.directoryUrl);
  const add = ['issuer', 'add', '--name', 'ca', '--directory', ca.directoryUrl, '--accept-terms'];
  const trust = ca.ca === undefined ? [] : ['--ca-file', strict.file(ca.ca)];
  await strict.refused(
    [...add, ...trust],
    new RegExp(
      `^vault: 127\\.0\\.0\\.1 is a loopback address; allow it with --allow-outbound 127\\.0\\.0\\.1:${port} ` +
        `\\(in vault\\.yaml: allow_outbound: "127\\.0\\.0\\.1:${port}"\\)\n  If the CA is yours, add its address to allow_outbound in vault\\.yaml`,
    ),
  );
  assert.equal(ca.requests.length, 0);
  const webhook = ['notification', 'add', 'webhook', '--channel', 'hook', '--secret-file'];
  await strict.done(...webhook, strict.file(JSON.stringify({ url: receiver.url })));
  await strict.refused(
    ['notification', 'test', '--channel', 'hook'],
    /is a loopback address; .*--allow-outbound/,
  );
  assert.equal(receiver.received.length, 0);
  const mail = ['notification', 'add', 'email', '--channel', 'mail', '--server', `localhost:${relay.port}`];
  await strict.done(...mail, '--to=ops@a.test', '--from=vault@a.test', '--security=none');
  await strict.refused(
    ['notification', 'test', '--channel', 'mail'],
    /localhost resolves to 127\.0\.0\.1, a loopback/,
  );
  assert.deepEqual([relay.said, relay.mails], [[], []]);
  appendFileSync(
    join(strict.data, 'vault.yaml'),
    `allow_outbound: "127.0.0.1:${port}, 127.0.0.1:${relay.port}"\n`,
    { mode: 0o600 },
  );
  await strict.done(...add, ...trust);
  await strict.done('notification', 'test', '--channel', 'mail');
  assert.equal(relay.mails.length, 1);
  await strict.refused(
    ['notification', 'test', '--channel', 'hook'],
    /is a loopback address; .*--allow-outbound/,
  );
});
