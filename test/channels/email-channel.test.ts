/**
 * E-mail, against a real mail server in the test: encrypted wherever a password goes, and plain text that people can
 * read.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { ChannelError, type Message } from '../../src/channels/channel.ts';
import { type EmailChannelConfig, emailChannel } from '../../src/channels/email-channel.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import { type SmtpOptions, smtpServer } from '../harness/notifications/smtp-server.ts';
import { freePort } from '../harness/processes/port.ts';

const message: Message = {
  id: 'msg_1',
  type: 'renewal.failed',
  timestamp: '2026-11-21T12:00:00Z',
  subject: 'wéb: a renewal failed',
  text: 'The renewal failed.\n.\nA line with a dot before.\n',
  data: { certificate: 'web' },
};
const { signal } = new AbortController();
const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard };
const password = 'correct-horse';

async function prepared(
  t: TestContext,
  options: SmtpOptions = {},
  settings: Partial<EmailChannelConfig> = {},
) {
  const server = await smtpServer(t, options);
  const config: EmailChannelConfig = {
    host: '127.0.0.1',
    port: server.port,
    security: 'starttls',
    from: 'vault@a.test',
    to: ['ops@a.test', 'night@a.test'],
    ca: server.ca,
    ...settings,
  };
  return { server, send: (abort = signal) => emailChannel.create(config, context).send(message, abort) };
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof ChannelError, String(error));
  return error.message;
}

suite('a mail', () => {
  test('is sent over STARTTLS with authentication and has the expected headers and text', async (t) => {
    const user = { username: 'vault', password };
    const { server, send } = await prepared(t, { user: 'vault', password }, user);
    await send();
    const [mail] = server.mails;
    assert(mail);
    assert.deepEqual(
      [mail.from, mail.to, mail.wasEncrypted, mail.user],
      [...['vault@a.test', ['ops@a.test', 'night@a.test'], true, 'vault']],
    );
    assert.match(mail.text, /^From: vault@a\.test$/m);
    assert.match(mail.text, /^To: ops@a\.test, night@a\.test$/m);
    assert.match(mail.text, /^Subject: =\?UTF-8\?/m);
    assert.match(mail.text, /^Message-ID: <msg_1@a\.test>$/m);
    assert.match(mail.text, /^Date: Sat, 21 Nov 2026 12:00:00 \+0000$/m);
    assert.match(mail.text, /^Auto-Submitted: auto-generated$/m);
    assert.match(mail.text, /^Content-Type: text\/plain; charset=utf-8$/m);
    assert(mail.text.includes('The renewal failed.\n.\nA line with a dot before.\n'), mail.text);
    assert(!server.said.join('\n').includes('MAIL FROM') || server.said.indexOf('STARTTLS') > 0);
  });

  test('is encrypted from the first byte if security is tls', async (t) => {
    const { server, send } = await prepared(t, { security: 'tls' }, { security: 'tls' });
    await send();
    assert.equal(server.mails[0]?.wasEncrypted, true);
  });

  test('is unencrypted only if the settings allow it', async (t) => {
    const plain = await prepared(t, { security: 'none' }, { security: 'none' });
    await plain.send();
    assert.equal(plain.server.mails[0]?.wasEncrypted, false);
    const stripped = await prepared(t, { security: 'none' });
    assert.match(
      await refusal(stripped.send()),
      /^the mail server 127\.0\.0\.1 responded with 5\d\d to STARTTLS$/,
    );
    assert.deepEqual(stripped.server.mails, []);
    assert(!stripped.server.said.some((line) => line.startsWith('MAIL')));
  });

  test('is not sent to a server whose certificate is not trusted', async (t) => {
    const { server, send } = await prepared(t, {}, { ca: undefined });
    assert.match(await refusal(send()), /certificate/);
    assert.deepEqual(server.mails, []);
  });

  test('is reported as rejected with the response codes of the server, without its text', async (t) => {
    const user = { username: 'vault', password };
    const { server, send } = await prepared(t, { user: 'vault', password: 'another' }, user);
    const words = await refusal(send());
    assert.match(words, / responded with 535 5\.7\.8 to AUTH PLAIN: wrong username or password$/);
    assert.doesNotMatch(words, /wrong password|correct/);
    server.answers.set('EHLO', '554 internal-4711');
    server.answers.set('HELO', '554 internal-4711');
    assert.match(await refusal(send()), / responded with 554 to EHLO: mail rejected$/);
  });

  test('with some or all recipients rejected is reported', async (t) => {
    const { server, send } = await prepared(t);
    server.answers.set('RCPT', '550 5.1.1 internal-4711');
    assert.equal(await send(), 'the mail server 127.0.0.1 rejected ops@a.test (550 5.1.1)');
    assert.deepEqual(server.mails[0]?.to, ['night@a.test']);
    const single = await prepared(t, {}, { to: ['ops@a.test'] });
    single.server.answers.set('RCPT', '550 internal-4711');
    assert.match(
      await refusal(single.send()),
      / responded with 550 to RCPT TO: no such mailbox, or relaying denied/,
    );
  });

  test('to a server that does not listen is reported in plain words', async (t) => {
    const { send } = await prepared(t, {}, { port: await freePort() });
    assert.equal(await refusal(send()), 'cannot connect to the mail server 127.0.0.1: connection refused');
  });

  test('the banner of another service is not shown', async (t) => {
    const banners = [
      'SSH-2.0-internal-4711',
      'HTTP/1.1 400 internal-4711',
      '-ERR internal-4711',
      '4711 x',
      '220\tx',
    ];
    for (const banner of banners) {
      const server = createServer((socket) => socket.on('error', () => undefined).end(`${banner}\r\n`));
      await once(server.listen(0, '127.0.0.1'), 'listening');
      t.after(() => server.close());
      const { port } = server.address() as AddressInfo;
      const { send } = await prepared(t, {}, { port });
      const words = await refusal(send());
      assert.match(words, /^the mail server 127\.0\.0\.1 (did not respond like a mail server|failed: [A-Z])/);
      assert.doesNotMatch(words, /4711|SSH|ERR|HTTP/);
    }
  });

  test('is abandoned with an error about the timeout when the signal aborts, if the server is silent', async (t) => {
    const server = createServer((socket) => socket.on('error', () => undefined).resume());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    const { send } = await prepared(t, {}, { port });
    const over = new AbortController();
    const connected = once(server, 'connection');
    const refused = refusal(send(over.signal));
    await connected;
    over.abort();
    assert.match(await refused, /did not accept the mail in time/);
  });
});

test('settings with an unencrypted password, without recipients or with invalid values are rejected', () => {
  const valid = { host: 'mail.a.test', from: 'vault@a.test', to: ['ops@a.test'] };
  assert(emailChannel.config.safeParse(valid).success);
  const wrong = [
    { host: 'mail a' },
    { host: undefined },
    { port: 0 },
    { security: 'opportunistic' },
    { from: 'vault' },
    { from: 'Vault <vault@a.test>' },
    { to: [] },
    { to: ['ops@a.test\r\nBcc: x@a.test'] },
    { to: ['a@a.test, b@a.test'] },
    { username: 'vault' },
    { password },
    { security: 'none', username: 'vault', password },
    { more: 1 },
  ];
  for (const one of wrong) {
    assert(!emailChannel.config.safeParse({ ...valid, ...one }).success, JSON.stringify(one));
  }
  const local = { ...valid, host: 'localhost', security: 'none', username: 'vault', password };
  assert(emailChannel.config.safeParse(local).success);
});
