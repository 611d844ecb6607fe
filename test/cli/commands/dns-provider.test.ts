/**
 * `vault dns-provider …`: what is added, tried and removed, and that credentials are shown and stored nowhere in the
 * clear.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fakeDns } from '../../harness/dns/fake-dns.ts';
import { commandLine, commandWords } from '../../harness/processes/command-line.ts';
import { vault } from '../../harness/processes/vault-process.ts';

const secretHint =
  '  Write settings and credentials to a YAML or JSON file and name it with --secret-file.\n';
const add = (options: string) => commandWords(`dns-provider add --name dns ${options}`);

/** A name server, and a webhook that puts TXT records into it. */
async function webhookWithDns(t: TestContext) {
  const dns = await fakeDns(t, { 'CNAME _acme-challenge.app.example.test': ['app.acme.test'] });
  const calls: string[] = [];
  const server = createServer(async (request, response) => {
    const { fqdn, value } = JSON.parse(await text(request)) as { fqdn: string; value: string };
    const key = `TXT ${fqdn.replace(/\.$/, '')}`;
    calls.push(`${request.url} ${fqdn}`);
    const { [key]: before = [], ...others } = dns.records;
    const kept = before.filter((one) => one !== value);
    const values = request.url === '/present' ? [...kept, value] : kept;
    dns.records = values.length === 0 ? others : { ...others, [key]: values };
    response.end('OK');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { dns, calls, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a DNS provider is added with encrypted credentials, listed, tested and removed', async (t) => {
  const { dns, calls, url } = await webhookWithDns(t);
  const { done, run, file, json, refused, holds } = commandLine(t);
  const secret = 'correct-horse-battery';
  const secretFile = file(`url: ${url}\nusername: vault\npassword: ${secret}\n`);
  const zones = '--zone Example.test. --zone example.test --zone acme.test';
  const added = await done(...add(`--type webhook ${zones} --secret-file ${secretFile}`));
  assert.ok(
    added.stderr.endsWith(
      'Added DNS provider dns.\n  Try: vault dns-provider test --name dns --domain example.test\n',
    ),
  );
  const listed = await done('dns-provider', 'list');
  assert.equal(listed.stdout, 'NAME  TYPE     ZONES\ndns   webhook  example.test acme.test\n');
  const [view] = await json<Record<string, unknown>[]>('dns-provider', 'list');
  assert.deepEqual(
    { ...view, created_at: '' },
    {
      ...{ name: 'dns', type: 'webhook', zones: ['example.test', 'acme.test'], created_at: '' },
    },
  );
  const trying = commandWords(`dns-provider test --name dns --resolver ${dns.server} --domain`);
  const tried = await done(...trying, 'www.example.test');
  assert.equal(tried.stdout, 'dns can present dns-01 challenges for www.example.test\n');
  assert.match(
    tried.stderr,
    /^Creating _acme-challenge\.www\.example\.test TXT "[\w-]{43}"\nWaiting until the record is visible\nRecord is visible\nRecord removed\n$/,
  );
  assert.match((await done(...trying, '*.app.example.test')).stderr, /^Creating app\.acme\.test TXT /);
  assert.deepEqual(calls, [
    ...['/present _acme-challenge.www.example.test.', '/cleanup _acme-challenge.www.example.test.'],
    ...['/present app.acme.test.', '/cleanup app.acme.test.'],
  ]);
  await refused(
    [...trying, 'other.test'],
    'vault: _acme-challenge.other.test is in none of the zones of dns: example.test, acme.test\n' +
      '  Add the zone to the provider, or point a CNAME to a name in one of its zones.\n',
  );
  for (const { stdout, stderr } of [added, listed, tried]) assert.ok(!`${stdout}${stderr}`.includes(secret));
  assert.ok(!holds(secret), 'the database has the password in the clear');
  assert.deepEqual(await run('dns-provider', 'remove', '--name', 'dns'), {
    code: 0,
    stdout: '',
    stderr: 'Removed DNS provider dns.\n',
  });
  assert.equal((await run('dns-provider', 'list', '--json')).stdout, '[]\n');
  assert.match(
    (await run('dns-provider', 'list')).stderr,
    /^No DNS providers yet\.\n {2}Try: vault dns-provider add/,
  );
});

test('missing, invalid and unknown fields in a secret file are reported without their values', async (t) => {
  const { refused, run, file, json } = commandLine(t);
  await refused(
    add('--type cloudflare --zone a.test'),
    'vault: invalid settings for cloudflare: api_token is missing or not a string: it must be an API token of ' +
      `Cloudflare (not the global API key)\n${secretHint}`,
  );
  const cases: [type: string, content: string, message: RegExp][] = [
    ['cloudflare', 'api_tokn: hunter2', /: api_token is missing .*; api_tokn is unknown\n/],
    ['cloudflare', 'api_token:hunter2', /a space after "api_token:"/],
    ['cloudflare', 'api_token: [hunter2', /neither valid YAML nor JSON: \w+ in line \d+\n/],
    [
      'cloudflare',
      '- hunter2',
      /must be a mapping of names to values, or a single line with the api_token\n/,
    ],
    [
      'rfc2136',
      '{"server": "ns1.a.test", "key_name": "hunter2"}',
      /: secret must be set together with key_name\n/,
    ],
    [
      'rfc2136',
      'server: ns1.a.test',
      /: key_name is missing \(to send updates without a key, set unsigned: true\)\n/,
    ],
    ['exec', 'command: /bin/true\nstyle: hunter2', /: style .*"lego"/],
    ['webhook', 'url: http://dns.a.test/hunter2', /: url must be an https:\/\/ URL /],
    ['route53', 'hunter2: hunter2', /: access_key_id is missing .*a key that is not a name is unknown\n/],
    ['manual', 'anything: hunter2', /: anything is unknown\n/],
  ];
  for (const [type, content, message] of cases) {
    const args = add(`--type ${type} --zone a.test --secret-file ${file(content)}`);
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(stderr, message);
    assert.ok(stderr.endsWith(secretHint), stderr);
    assert.doesNotMatch(stderr, /hunter2/);
  }
  await refused(
    add('--type manual --zone a.test --secret-file /nowhere/absent'),
    /^vault: cannot read \/nowhere\/absent: no such file/,
  );
  assert.deepEqual(await json('dns-provider', 'list'), []);
});

test('an unknown type, an invalid zone and a duplicate name are rejected', async (t) => {
  const { refused, done } = commandLine(t);
  await refused(
    add('--type clodflare --zone a.test'),
    'vault: unknown DNS provider type "clodflare"\n  Did you mean "cloudflare"?\n',
  );
  await refused(
    add('--type bind --zone a.test'),
    'vault: unknown DNS provider type "bind"\n' +
      '  Use one of: rfc2136, exec, webhook, acme-dns, manual, lexicon, acme-sh, cloudflare, route53, azure-dns, google-cloud-dns, ' +
      'digitalocean, hetzner, ovh, desec.\n',
  );
  const noZone = (text: string) => `vault: "${text}" is not a zone such as example.com\n`;
  await refused(
    add('--type manual --zone *.a.test --zone 192.0.2.1 --zone a..b'),
    noZone('*.a.test') + noZone('192.0.2.1') + noZone('a..b'),
  );
  await refused(add('--type manual'), /^vault: --zone is missing\n/, 2);
  await done(...add('--type manual --zone a.test'));
  await refused(
    add('--type manual --zone b.test'),
    'vault: a DNS provider named dns already exists\n' +
      '  Choose another name, or remove the existing provider.\n  Try: vault dns-provider remove --name dns\n',
  );
});

test('dns-provider test rejects invalid domains, unknown providers and unusable resolvers', async (t) => {
  const { refused, done } = commandLine(t);
  await done(...add('--type manual --zone a.test'));
  await refused(
    commandWords('dns-provider test --name dns --domain 192.0.2.1'),
    'vault: --domain: 192.0.2.1 is an IP address; dns-01 validates only names\n' +
      '  Use http-01 or tls-alpn-01 for IP addresses.\n',
  );
  await refused(
    commandWords('dns-provider test --name dns --domain a..b'),
    'vault: --domain: "a..b" is not a domain\n  Use a name such as www.example.com.\n',
  );
  await refused(
    commandWords('dns-provider test --name dms --domain a.test'),
    'vault: unknown DNS provider "dms"\n  Did you mean "dns"?\n',
  );
  await refused(
    commandWords('dns-provider test --name dns --domain a.test --resolver ns1'),
    /^vault: --resolver: "ns1" is not the address of a DNS server\n/,
  );
  await refused(
    commandWords('dns-provider test --name dns --domain a.test --resolver 127.0.0.1:1'),
    /^vault: failed to look up the CNAME of _acme-challenge\.a\.test: query for .* failed: 127\.0\.0\.1:1 is unreachable/,
  );
});

test('lexicon and acme.sh providers are added with options and a secret file that is stored encrypted', async (t) => {
  const { done, json, file, refused, holds } = commandLine(t);
  const program = '/usr/local/bin/program';
  const token = 'correct-horse-battery';
  const secrets = file(`environment:\n  LEXICON_GANDI_AUTH_TOKEN: ${token}\n`);
  const both = `--zone example.test --program ${program} --secret-file ${secrets}`;
  const added = await done(...add(`--type lexicon --provider gandi ${both}`));
  assert.match(added.stderr, /^Added DNS provider dns\.\n/m);
  await done(...commandWords(`dns-provider add --name sh --type acme-sh --script dns_gandi.sh ${both}`));
  assert.deepEqual(
    (await json<{ name: string; type: string }[]>('dns-provider', 'list')).map(({ name, type }) => [
      name,
      type,
    ]),
    [
      ['dns', 'lexicon'],
      ['sh', 'acme-sh'],
    ],
  );
  assert.equal(holds(token), false);
  const failed = (options: string, message: RegExp, code: 1 | 2) =>
    refused(commandWords(`dns-provider add --name other --zone example.test ${options}`), message, code);
  await failed(
    '--type cloudflare --provider gandi',
    /^vault: --provider is not for the type cloudflare\n/,
    2,
  );
  await failed('--type lexicon --script dns_x.sh', /^vault: --script is not for the type lexicon\n/, 2);
  await failed('--type lexicon', /^vault: invalid settings for lexicon: provider /, 1);
  await failed('--type acme-sh --script dns_x.sh', /^vault: invalid settings for acme-sh: program /, 1);
});

test('dns-provider types lists what each type reaches', async () => {
  const { stdout } = await vault(['dns-provider', 'types']);
  assert.match(stdout, /^TYPE +REACHES\n/);
  assert.match(stdout, /^lexicon +the program lexicon, for about 90 DNS providers$/m);
  assert.match(stdout, /^cloudflare +Cloudflare$/m);
  const listed = JSON.parse((await vault(['dns-provider', 'types', '--json'])).stdout) as { type: string }[];
  assert.ok(listed.some(({ type }) => type === 'acme-sh'));
});
