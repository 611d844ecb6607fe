/** Programs that are told: what they get, and what becomes of their failures. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { ChannelError, type Message } from '../../src/channels/channel.ts';
import { execChannel } from '../../src/channels/exec-channel.ts';
import { hookScript } from '../harness/dns/hook-script.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import { tempDir } from '../harness/temp-dir.ts';

const message: Message = {
  id: 'msg_1',
  type: 'renewal.failed',
  timestamp: '2026-11-21T12:00:00Z',
  subject: 'web: a renewal failed; $(touch /tmp/x) `id`',
  text: 'x'.repeat(200_000),
  data: { certificate: 'web' },
};
const { signal } = new AbortController();
const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard };

function program(t: TestContext, body: string, settings: object = {}) {
  const dir = tempDir(t);
  const command = hookScript(dir, body);
  const config = { command, environment: { TOKEN: 'hunter2' }, timeout: 30, ...settings };
  return { dir, send: (abort = signal) => execChannel.create(config, context).send(message, abort) };
}

suite('a program', () => {
  test('receives the message as JSON on standard input, and its ID, type and subject in the environment', async (t) => {
    const { dir, send } = program(
      t,
      `const { readFileSync, writeFileSync } = require('node:fs');
       const { VAULT_NOTIFICATION_TYPE: type, VAULT_NOTIFICATION_ID: id, VAULT_NOTIFICATION_SUBJECT: subject, TOKEN: token } = process.env;
       writeFileSync(__dirname + '/got.json', JSON.stringify({ type, id, subject, token, input: JSON.parse(readFileSync(0, 'utf8')) }));`,
    );
    await send();
    const { input, ...head } = JSON.parse(readFileSync(join(dir, 'got.json'), 'utf8'));
    assert.deepEqual(input, message);
    const { id, type, subject } = message;
    assert.deepEqual(head, { id, type, subject, token: 'hunter2' });
  });

  test('counts as successful if it exits without reading its input', async (t) => {
    await assert.doesNotReject(program(t, '').send());
  });

  test('is reported as failed with its last output, in which secrets are hidden', async (t) => {
    const { send } = program(t, `console.error('no route for', process.env.TOKEN); process.exitCode = 3;`);
    await assert.rejects(send(), (error) => {
      assert(error instanceof ChannelError);
      assert.match(error.message, / failed with exit code 3: no route for \[secret\]$/);
      return true;
    });
  });

  test('is killed if it never exits', async (t) => {
    const { send } = program(t, 'setInterval(() => {}, 1000);', { timeout: 1 });
    await assert.rejects(send(), / was killed after 1 s \(timeout\)/);
  });
});

test('settings without an absolute path of a program or with invalid values are rejected', () => {
  const wrong = [
    {},
    { command: 'notify-send' },
    { command: [] },
    { command: ['notify-send'] },
    { command: ['./notify'] },
    { command: ['/bin/a\0b'] },
    { command: ['/bin/true'], timeout: 0 },
    { command: ['/bin/true'], timeout: 601 },
    { command: ['/bin/true'], environment: { 'A=B': 'c' } },
    { command: ['/bin/true'], shell: true },
  ];
  for (const one of wrong) assert(!execChannel.config.safeParse(one).success, JSON.stringify(one));
  assert(execChannel.config.safeParse({ command: ['/bin/true', 'argument'] }).success);
});
