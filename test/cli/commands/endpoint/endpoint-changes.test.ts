/** `vault endpoint add`, `update`, `remove` and `suggest`: what they record, and what they reject. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { makeChain } from '../../../harness/ca/openssl-chain.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

/** A vault with the certificates web and mail. */
async function prepared(t: TestContext) {
  const line = commandLine(t);
  const made = (words: string) => line.done(...commandWords(`certificate create ${words}`));
  await made('--name web --domain www.example.test --domain *.shop.test');
  await made('--name mail --domain mx1.example.test');
  const done = async (words: string) => (await line.done('endpoint', ...commandWords(words))).stderr;
  const refused = (words: string, text: string | RegExp, code: 1 | 2 = 1) =>
    line.refused(['endpoint', ...commandWords(words)], text, code);
  /** Action, resource and detail of all events of endpoints, oldest first. */
  const events = async () => {
    type Event = { action: string; resource: string; detail: Record<string, unknown> };
    const all = await line.json<Event[]>('audit', 'list');
    return all
      .filter(({ action }) => action.startsWith('endpoint.'))
      .map(({ action, resource, detail: { id, ...detail } }) => [action, resource, detail])
      .reverse();
  };
  return { ...line, done, refused, events };
}

test('an endpoint is added with the usual port and server name, or with the given settings', async (t) => {
  const { done, events } = await prepared(t);
  assert.equal(
    await done('add WWW.example.test --certificate web'),
    'Added endpoint www.example.test:443.\n  Try: vault endpoint check www.example.test:443\n',
  );
  await done('add --address 192.0.2.7 --certificate mail --starttls smtp');
  assert.equal(
    await done('add 2001:db8::1 --starttls none --trust private-ca --interval 15m'),
    "Added endpoint [2001:db8::1]:443.\n  Try: vault endpoint check '[2001:db8::1]:443'\n",
  );
  await done('add a.shop.test:8443 --certificate web');
  await done('add other.test --certificate web --server-name none');
  const usual = { starttls: null, trust: 'auto', interval: '1h' };
  const created = (await events()).map(([action, resource, detail]) => {
    const { address, ...others } = detail as { address: string };
    assert.deepEqual([action, resource], ['endpoint.create', `endpoint:${address}`]);
    return [address, others];
  });
  assert.deepEqual(created, [
    ['www.example.test:443', { certificate: 'web', server_name: 'www.example.test', ...usual }],
    ['192.0.2.7:25', { certificate: 'mail', server_name: 'mx1.example.test', ...usual, starttls: 'smtp' }],
    [
      '[2001:db8::1]:443',
      { certificate: null, server_name: '', starttls: null, trust: 'private-ca', interval: '15m' },
    ],
    ['a.shop.test:8443', { certificate: 'web', server_name: 'a.shop.test', ...usual }],
    ['other.test:443', { certificate: 'web', server_name: '', ...usual }],
  ]);
});

test('an endpoint that exists, an unknown certificate and invalid settings are rejected', async (t) => {
  const { done, refused, events, file } = await prepared(t);
  await done('add www.example.test --certificate web');
  await refused(
    'add www.example.test:443',
    'vault: There is already an endpoint www.example.test:443 with the server name www.example.test.\n' +
      '  Try: vault endpoint list\n',
  );
  await refused(
    'add a.test --certificate wwb',
    /^vault: Unknown certificate "wwb"\.\n {2}Did you mean "web"\?\n/,
  );
  await refused('add https://a.test/', /^vault: "https:\/\/a\.test\/" is not an address: /);
  await refused('add a.test:0', /is not an address/);
  await refused('add *.a.test', /is not an address/);
  await refused('add a.test --starttls gopher', /starttls must be one of "smtp", /);
  await refused('add a.test --trust bundle', /trust must be one of "auto", "public", "private-ca"/);
  await refused('add a.test --interval 1m', /"1m" is not an interval: .* from 5m to 30d/);
  await refused('add a.test --server-name *.a.test', /"\*\.a\.test" is not a server name/);
  await refused('add a.test --ca nothing.pem', /nothing\.pem/);
  await refused(`add a.test --ca ${file('text')}`, /not a PEM certificate/);
  await refused('add', /^vault: (HOST:PORT|--address) is missing/, 2);
  assert.equal((await events()).length, 1);
});

test('bundles of several files are trusted, and exclude another trust', needs('openssl'), async (t) => {
  const { done, refused, events, file } = await prepared(t);
  const [one, other] = [makeChain(tempDir(t)), makeChain(tempDir(t))].map(({ fullchainPem }) =>
    file(fullchainPem),
  );
  await refused(
    `add a.test --trust public --ca ${one}`,
    /trust and ca_pem exclude each other: use one of them/,
  );
  await done(`add a.test --ca ${one} --ca ${other}`);
  await done('update a.test --trust public');
  await done(`update a.test --ca ${one}`);
  assert.deepEqual(
    (await events()).map(([, , detail]) => (detail as { trust: string }).trust),
    ['bundle', 'public', 'bundle'],
  );
});

test('a change records what is different, and the address selects the endpoint', async (t) => {
  const { done, refused, events } = await prepared(t);
  await done('add mx1.example.test --certificate mail --starttls smtp');
  const changed = 'Changed endpoint mx1.example.test:25.\n  Try: vault endpoint check mx1.example.test:25\n';
  assert.equal(await done('update mx1.example.test --interval 30m'), changed);
  assert.equal(await done('update mx1.example.test:25 --interval 30m'), changed);
  await done('update mx1.example.test --certificate none --trust public');
  assert.deepEqual((await events()).slice(1), [
    ['endpoint.update', 'endpoint:mx1.example.test:25', { interval: '30m', previous: { interval: '1h' } }],
    [
      'endpoint.update',
      'endpoint:mx1.example.test:25',
      { certificate: null, trust: 'public', previous: { certificate: 'mail', trust: 'auto' } },
    ],
  ]);
  await refused(
    'update mx1.example.test',
    'vault: nothing to change\n  Use --certificate, --starttls, --trust, --ca or --interval.\n',
    2,
  );
  await refused('update mx1.example.test --certificate wwb', /^vault: Unknown certificate "wwb"/);
  await refused('update mx1.example.test:26 --interval 1h', /^vault: no endpoint mx1\.example\.test:26\n/);
  assert.equal((await events()).length, 3);
});

test('of several endpoints at an address, --server-name selects one to change or remove', async (t) => {
  const { done, refused, run } = await prepared(t);
  for (const name of ['www.example.test', 'a.shop.test', 'none'])
    await done(`add 192.0.2.7 --certificate web --server-name ${name}`);
  const several =
    'vault: 3 endpoints at 192.0.2.7\n' +
    '  Select one by --server-name: www.example.test, a.shop.test, none.\n';
  await refused('update 192.0.2.7 --interval 1d', several, 2);
  await refused('remove 192.0.2.7', several, 2);
  await refused(
    'remove 192.0.2.7 --server-name b.shop.test',
    'vault: no endpoint 192.0.2.7 with the server name b.shop.test\n  Try: vault endpoint list\n',
  );
  await refused('remove 192.0.2.7:4', 'vault: no endpoint 192.0.2.7:4\n  Did you mean "192.0.2.7:443"?\n');
  await done('update 192.0.2.7 --server-name none --certificate mail');
  const listed = async () =>
    (await run('endpoint', 'list')).stdout
      .split('\n')
      .slice(1, -1)
      .map((line) => line.split(/ +/, 3).slice(1).join(' '));
  assert.deepEqual(await listed(), ['none mail', 'a.shop.test web', 'www.example.test web']);
  assert.equal(await done('remove 192.0.2.7 --server-name a.shop.test'), 'Removed endpoint 192.0.2.7:443.\n');
  await done('remove 192.0.2.7 --server-name none');
  assert.deepEqual(await listed(), ['www.example.test web']);
  await done('remove 192.0.2.7');
  assert.deepEqual(await listed(), []);
});

test('suggestions are commands for the names of a certificate that have no endpoint yet, without wildcards', async (t) => {
  const { done, refused, run, json, done: added } = await prepared(t);
  const names = [
    'www.a.test',
    'mx2.a.test',
    'imap.a.test',
    'mxyz.a.test',
    'smtp',
    '192.0.2.9',
    '2001:db8::9',
  ];
  const domains = [...names, '*.a.test'].flatMap((name) => ['--domain', name]);
  assert.equal((await run('certificate', 'create', '--name', 'all', ...domains)).code, 0);
  const { code, stdout, stderr } = await run('endpoint', 'suggest', 'all');
  assert.deepEqual([code, stderr], [0, '']);
  assert.deepEqual(stdout.split('\n'), [
    'vault endpoint add www.a.test:443 --certificate all',
    'vault endpoint add mx2.a.test:25 --certificate all --starttls smtp',
    'vault endpoint add imap.a.test:143 --certificate all --starttls imap',
    'vault endpoint add mxyz.a.test:443 --certificate all',
    'vault endpoint add smtp:443 --certificate all',
    'vault endpoint add 192.0.2.9:443 --certificate all',
    "vault endpoint add '[2001:db8::9]:443' --certificate all",
    '',
  ]);
  const [, second = ''] = stdout.split('\n');
  await added(second.replace('vault endpoint ', ''));
  assert.deepEqual((await json<unknown[]>('endpoint', 'suggest', 'all')).slice(0, 2), [
    { address: 'www.a.test:443', starttls: null },
    { address: 'imap.a.test:143', starttls: 'imap' },
  ]);
  await done('add www.example.test');
  const none = await run('endpoint', 'suggest', 'web');
  assert.deepEqual(none, { code: 0, stdout: '', stderr: 'No further endpoints to suggest.\n' });
  await refused('suggest wwb', /^vault: Unknown certificate "wwb"\.\n {2}Did you mean "web"\?\n/);
});
