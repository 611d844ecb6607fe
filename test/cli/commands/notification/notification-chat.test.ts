/** `vault notification add` for chat and paging services: secrets come from files, and stay where they belong. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { fakeChatApi, jsonAnswer } from '../../../harness/notifications/fake-chat-api.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';

const add = (options: string) => commandWords(`notification add ${options}`);
const key = 'k3y'.padEnd(32, '0');

/** The options, the content of the secret file, and what the service must receive. */
const services: [type: string, options: string, secret: (origin: string) => string, call: string][] = [
  ['slack', '', (origin) => `${origin}/services/s3cret`, '/services/s3cret'],
  ['teams', '', (origin) => `${origin}/flow?sig=s3cret`, '/flow?sig=s3cret'],
  ['discord', '', (origin) => `url: ${origin}/api/s3cret`, '/api/s3cret'],
  ['telegram', '--url ORIGIN --chat=-1001 --thread 4', () => '1:s3cret', '/bot1:s3cret/sendMessage'],
  ['ntfy', '--url ORIGIN --topic vault', () => 'tk_s3cret', '/'],
  ['gotify', '--url ORIGIN', () => 's3cret', '/message'],
  ['pagerduty', '--url ORIGIN', () => key, '/v2/enqueue'],
  ['opsgenie', '--url ORIGIN', () => 's3cret', '/v2/alerts'],
];

suite('vault notification add', () => {
  for (const [type, options, secret, call] of services) {
    test(`${type} reads its secret from a file, and test reports whether the service accepts`, async (t) => {
      const { done, refused, file, holds } = commandLine(t);
      const api = await fakeChatApi(t);
      const { origin } = api;
      const path = file(`${secret(origin)}\n`);
      const added = await done(
        ...add(`${type} --channel ops ${options.replace('ORIGIN', origin)} --secret-file ${path}`),
      );
      assert.match(added.stderr, /Added channel ops\.\n {2}Try: vault notification test --channel ops\n$/);
      assert.equal(added.stdout, '', 'no signing secret is made up');
      const tried = await done('notification', 'test', 'ops');
      assert.equal(tried.stdout, 'ops accepted the test notification\n');
      assert.deepEqual(
        api.calls.map((one) => one.call),
        [`POST ${call}`],
      );
      assert.match(api.calls[0]?.body ?? '', /test notification/);
      api.answers.push(jsonAnswer(401, { error: 's3cret' }));
      await refused(['notification', 'test', 'ops'], `vault: ${new URL(origin).host} responded with 401\n`);
      const listed = await done('notification', 'list');
      assert(
        listed.stdout.includes(`ops      ${type}`) && listed.stdout.includes(` ${origin} `),
        listed.stdout,
      );
      const log = await done('notification', 'log');
      for (const hidden of ['s3cret', key]) {
        assert(!holds(hidden), 'the database has the secret in the clear');
        for (const { stdout, stderr } of [added, tried, listed, log])
          assert(!`${stdout}${stderr}`.includes(hidden));
      }
    });
  }

  test('webhook accepts a body template and rejects an invalid one', async (t) => {
    const { done, refused, file } = commandLine(t);
    const api = await fakeChatApi(t);
    const url = `--url ${api.origin}/hook`;
    const template = file('{"text": "{{severity}}: {{subject}} \\"{{message}}\\""}');
    await done(...add(`webhook --channel own ${url} --template ${template}`));
    await done('notification', 'test', 'own');
    const { text } = JSON.parse(api.calls[0]?.body ?? '') as { text: string };
    assert.match(text, /^info: test notification "Notification channel own works\.\n/);
    const plain = file('{{event}}');
    await done(...add(`webhook --channel text ${url} --template ${plain} --content-type text/plain`));
    await done('notification', 'test', 'text');
    assert.deepEqual([api.calls[1]?.body, api.calls[1]?.headers['content-type']], ['test', 'text/plain']);
    await refused(
      add(`webhook --channel x ${url} --template ${plain}`),
      /webhook: template is not JSON; put /,
    );
    const unknown = file('"{{certificat}}"');
    await refused(
      add(`webhook --channel x ${url} --template ${unknown}`),
      /unknown placeholder \{\{certificat\}\}/,
    );
    await refused(
      add(`webhook --channel x ${url} --content-type text/plain`),
      /content_type must be set together/,
    );
    await refused(add(`webhook --channel x ${url} --template ${file(Buffer.of(0xff))}`), /is not UTF-8 text/);
  });

  test('reports missing and invalid settings without secret values', async (t) => {
    const { refused, file } = commandLine(t);
    await refused(
      add('slack --channel ops'),
      /^vault: invalid settings for slack: url is missing; it must be /,
    );
    await refused(
      add(`slack --channel ops --secret-file ${file('hunter2')}`),
      /^(?!.*hunter2).*url must be an https/,
    );
    await refused(add('telegram --channel ops --chat me'), /token is missing.*chat must be the id/);
    await refused(add('telegram --channel ops --thread x'), /--thread: "x" is not a number/, 2);
    await refused(
      add(`pagerduty --channel p --secret-file ${file('short')}`),
      /routing_key must be the integration/,
    );
    await refused(add('gotify --channel g --topic x'), /unknown option --topic/, 2);
    await refused(add('slak --channel g'), /slack/, 2);
  });
});
