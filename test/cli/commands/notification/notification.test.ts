/**
 * `vault notification …`: what is added, tried, changed and removed, and that no secret is shown or stored in the
 * clear.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { realWorld } from '../../../../src/base/world.ts';
import { hookScript } from '../../../harness/dns/hook-script.ts';
import { isSignedWith, status, webhookReceiver } from '../../../harness/http/webhook-receiver.ts';
import { smtpServer } from '../../../harness/notifications/smtp-server.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const add = (options: string) => commandWords(`notification add ${options}`);

test('a webhook is added with a secret that is printed once, tested, updated and removed', async (t) => {
  const { done, run, json, refused, holds, file } = commandLine(t);
  const receiver = await webhookReceiver(t);
  const added = await done(...add(`webhook --channel ops --url ${receiver.url} --event renewal.failed`));
  assert.match(added.stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
  const secret = added.stdout.trim();
  assert.ok(
    added.stderr.endsWith(
      'Added channel ops.\n  Try: vault notification test --channel ops\nSigning secret, not shown again:\n',
    ),
  );
  const tried = await done('notification', 'test', '--channel', 'ops');
  assert.equal(tried.stdout, 'ops accepted the test notification\n');
  const [got] = receiver.received;
  assert(got && isSignedWith(secret, got, realWorld.now()));
  assert.equal(got.json.subject, 'test notification');
  receiver.answers.push(status(500));
  const { host, origin } = new URL(receiver.url);
  await refused(['notification', 'test', '--channel', 'ops'], `vault: ${host} responded with 500\n`);
  const listed = await done('notification', 'list');
  assert.match(listed.stdout, /^CHANNEL +TYPE +TO +EVENTS +CERTIFICATES +DIGEST +LAST\n/);
  assert.ok(
    listed.stdout.includes(`ops      webhook  ${origin}  renewal.failed  *             -       failed\n`),
  );
  const log = await done('notification', 'log', '--channel', 'ops');
  assert.match(
    log.stdout,
    /^QUEUED .*\n\S+ +ops +test +- +failed +1 +.* responded with 500\n\S+ +ops +test +- +delivered +1 +-\n$/,
  );
  const [failed] = await json<{ status: string; event: string }[]>('notification', 'log', '--failed');
  assert.partialDeepStrictEqual(failed, { status: 'failed', event: 'test', channel: 'ops', attempts: 1 });
  await done(...commandWords('notification update --channel ops --event all --digest 07:00 --disable'));
  const [view] = await json<Record<string, unknown>[]>('notification', 'list');
  assert.partialDeepStrictEqual(view, { digest_at: '07:00', target: origin });
  assert.equal((view?.events as string[] | undefined)?.length, 11);
  assert.notEqual(view?.disabled_at, null);
  const replacement = file(`url: ${receiver.url}\nsecret: ${secret}\n`);
  await done(
    'notification',
    'update',
    '--channel',
    'ops',
    '--secret-file',
    replacement,
    '--enable',
    '--digest',
    'none',
  );
  for (const text of [secret, 't0ken']) {
    assert.ok(!holds(text), `the database has ${text} in the clear`);
    for (const { stdout, stderr } of [tried, listed, log]) assert.ok(!`${stdout}${stderr}`.includes(text));
  }
  assert.deepEqual(await run('notification', 'remove', '--channel', 'ops'), {
    ...{ code: 0, stdout: '', stderr: 'Removed channel ops.\n' },
  });
  assert.match(
    (await run('notification', 'list')).stderr,
    /^No notification channels yet\.\n {2}Try: vault notification add/,
  );
});

test('email with a password file and exec with a program deliver test notifications', async (t) => {
  const { done, refused, file, json, holds } = commandLine(t);
  const server = await smtpServer(t, { user: 'vault', password: 'correct-horse' });
  const secret = file('correct-horse\n');
  const to = '--to ops@a.test --to night@a.test --from vault@a.test --username vault';
  await done(
    ...add(`email --channel mail --server 127.0.0.1:${server.port} ${to} --secret-file ${secret}`),
    ...['--ca-file', file(server.ca)],
  );
  await done('notification', 'test', '--channel', 'mail');
  assert.partialDeepStrictEqual(server.mails[0], {
    ...{ from: 'vault@a.test', to: ['ops@a.test', 'night@a.test'], wasEncrypted: true, user: 'vault' },
  });
  assert.match(server.mails[0]?.text ?? '', /^Notification channel mail works\.$/m);
  server.answers.set('RCPT', '550 no such user');
  const words = 'the mail server 127.0.0.1 rejected ops@a.test (550)';
  await refused(['notification', 'test', '--channel', 'mail'], `vault: ${words}\n`);
  assert.deepEqual(server.mails[1]?.to, ['night@a.test']);
  const [last] = await json<Record<string, unknown>[]>('notification', 'log');
  assert.partialDeepStrictEqual(last, { status: 'delivered', error: words });
  assert.ok(!holds('correct-horse'));
  const dir = tempDir(t);
  const [program, script] = hookScript(
    dir,
    `require('node:fs').writeFileSync(__dirname + '/got.json', require('node:fs').readFileSync(0));`,
  );
  await done(
    ...add(`exec --channel script --command ${program} --argument ${script} --event none --digest 06:30`),
  );
  await done('notification', 'test', '--channel', 'script');
  assert.equal(JSON.parse(readFileSync(join(dir, 'got.json'), 'utf8')).type, 'test');
  const views = await json<Record<string, unknown>[]>('notification', 'list');
  assert.deepEqual(
    views.map(({ name, target, events }) => [name, target, (events as string[]).length]),
    [
      ['mail', 'ops@a.test night@a.test', 10],
      ['script', program, 0],
    ],
  );
});

test('a failed program shows no part of its secrets, in errors or in the delivery log', async (t) => {
  const { done, refused, file, json } = commandLine(t);
  const script = `process.stderr.write('bad: ' + process.env.TOKEN); process.exitCode = 1;`;
  const command = hookScript(tempDir(t), script);
  const tokens = ['S3CRET-block-0123456789\n', `S3CRET-${'key-'.repeat(1250)}end`];
  for (const [at, TOKEN] of tokens.entries()) {
    const settings = file(JSON.stringify({ command, environment: { TOKEN } }));
    await done(...add(`exec --channel script${at} --secret-file ${settings}`));
    const words = /^vault: .* failed with exit code 1: (bad: |…)\[secret\]\n$/;
    await refused(['notification', 'test', '--channel', `script${at}`], words);
    const [last] = await json<{ error: string }[]>('notification', 'log');
    assert.match(last?.error ?? '', / failed with exit code 1: (bad: |…)\[secret\]$/);
  }
});

test('missing, invalid and unknown settings are reported without secret values', async (t) => {
  const { refused, file, run, done } = commandLine(t);
  await refused(add('webhook --channel ops'), /^vault: invalid settings for webhook: url is missing/);
  await refused(add('webhook --channel ops --url http://a.test/'), /url must be an https:\/\/ URL/);
  await refused(add('webhook --url https://a.test/'), /^vault: --channel is missing\n/, 2);
  await refused(
    add('webhook --channel ops --url https://a.test/ --event rain'),
    /"rain" is not an event; use one of /,
  );
  await refused(
    add('webhook --channel ops --url https://a.test/ --digest 7'),
    /the time of a digest is HH:MM/,
  );
  await refused(
    add('email --channel m --server a:b --from a@a.test'),
    /--server: "a:b" is not HOST\[:PORT\]/,
    2,
  );
  await refused(add('exec --channel x --command notify'), /must begin with an absolute path/);
  await refused(
    add('exec --channel x --command /bin/true --timeout soon'),
    /--timeout: "soon" is not a number/,
    2,
  );
  for (const content of ['hunter2', 'secret: hunter2', 'hunter2: 1', '[hunter2']) {
    const { code, stdout, stderr } = await run(
      ...add(`webhook --channel ops --url https://a.test/ --secret-file ${file(content)}`),
    );
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.doesNotMatch(stderr, /hunter2/);
  }
  await done(...add('webhook --channel ops --url https://a.test/'));
  await refused(
    ['notification', 'test', '--channel', 'obs'],
    /Unknown notification channel "obs"\.\n {2}Did you mean "ops"\?\n$/,
  );
  await refused(['notification', 'update', '--channel', 'ops'], /^vault: nothing to change\n/, 2);
  await refused(
    ['notification', 'update', '--channel', 'ops', '--enable', '--disable'],
    /exclude each other/,
    2,
  );
  await refused(['notification', 'log', '--limit', '0'], /is not a number from 1 to 1000/, 2);
});

test('a running server delivers notifications about events of other commands', async (t) => {
  const { done, data, json } = commandLine(t);
  const receiver = await webhookReceiver(t);
  await done(...add(`webhook --channel ops --url ${receiver.url} --event certificate.issued`));
  await serve(t, data);
  const heard = Promise.withResolvers<void>();
  receiver.answers.push((response) => {
    response.writeHead(204).end();
    heard.resolve();
  });
  await done('certificate', 'create', '--name', 'web', '--domain', 'web.example.test');
  await heard.promise;
  assert.equal(receiver.received[0]?.json.subject, 'web: version 1 issued');
  const [event] = await json<{ event: string; about: string }[]>('notification', 'log');
  assert.partialDeepStrictEqual(event, { event: 'certificate.issued', about: 'web' });
});
