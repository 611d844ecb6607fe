/** The provider `lexicon`: how the program is called, and the real one where it is installed. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { realWorld } from '../../../src/base/world.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { lexicon } from '../../../src/dns/providers/lexicon.ts';
import { fakeContext } from '../../harness/dns/fake-provider.ts';
import type { HookCall } from '../../harness/dns/hook-script.ts';
import { findProgram, needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const never = new AbortController().signal;
const record = {
  name: '_acme-challenge.www.sub.example.com',
  value: 'v-1',
  zone: 'sub.example.com',
  domain: 'www.sub.example.com',
};

function providerFor(config: object) {
  return lexicon.create(lexicon.config.parse(config), { ...fakeContext(), world: realWorld, log: silentLog });
}

function fakeLexicon(dir: string, last = '') {
  const program = join(dir, 'lexicon');
  const file = join(dir, 'calls.jsonl');
  const line = "JSON.stringify({ args: process.argv.slice(2), env: process.env }) + '\\n'";
  writeFileSync(
    program,
    `#!${process.execPath}\nrequire('node:fs').appendFileSync(${JSON.stringify(file)}, ${line});\n${last}\n`,
  );
  chmodSync(program, 0o755);
  const calls = () =>
    readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text) as HookCall);
  return { program, calls };
}

test('lexicon is called to create and delete one value, with the credentials only in the environment', async (t) => {
  const { program, calls } = fakeLexicon(tempDir(t));
  const environment = { LEXICON_GANDI_AUTH_TOKEN: 'top-secret-token' };
  const provider = providerFor({ provider: 'gandi', program, environment });
  await provider.present(record, never);
  await provider.remove(record, never);
  const rest = [record.zone, 'TXT', '--name', record.name, '--content', 'v-1'];
  assert.deepEqual(
    calls().map(({ args }) => args),
    ['create', 'delete'].map((verb) => ['--delegated', record.zone, 'gandi', verb, ...rest]),
  );
  for (const { env, args } of calls()) {
    assert.equal(env.LEXICON_GANDI_AUTH_TOKEN, 'top-secret-token');
    assert.ok(!args.join(' ').includes('top-secret'));
    assert.deepEqual(
      Object.keys(env).filter((name) => !['PATH', 'HOME', 'LANG', 'LEXICON_GANDI_AUTH_TOKEN'].includes(name)),
      [],
    );
  }
});

test('a failure includes the output of lexicon without the credentials, or the missing program', async (t) => {
  const { program } = fakeLexicon(tempDir(t), "console.error('401 for top-secret-token'); process.exit(3);");
  const environment = { LEXICON_GANDI_AUTH_TOKEN: 'top-secret-token' };
  await assert.rejects(
    providerFor({ provider: 'gandi', program, environment }).present(record, never),
    new DnsProviderError(`${program} failed with exit code 3: 401 for [secret]`),
  );
  await assert.rejects(
    providerFor({ provider: 'gandi', program: '/nowhere/lexicon' }).present(record, never),
    /failed to start \/nowhere\/lexicon: no such file/,
  );
});

for (const [settings, message] of [
  [{}, /provider/],
  [{ provider: '--help' }, /must be a name from/],
  [{ provider: 'gandi', program: 'lexicon' }, /must be an absolute path/],
  [{ provider: 'gandi', auth_token: 'x' }, /auth_token/],
] as const) {
  test(`settings ${JSON.stringify(settings)} are rejected`, () => {
    assert.match(String(lexicon.config.safeParse(settings).error), message);
  });
}

type RecordSet = {
  name: string;
  type: string;
  ttl: number;
  records: { content: string; disabled: boolean }[];
};

/** The API of a PowerDNS server with one zone. Returns its URL and the values at `name`. */
async function powerDns(t: TestContext, zone: string, key: string) {
  let rrsets: RecordSet[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const isZone = request.url === `/api/v1/servers/localhost/zones/${zone}.`;
    const status = !isZone ? 404 : request.headers['x-api-key'] !== key ? 401 : 200;
    if (status === 200 && request.method === 'PATCH') {
      for (const { name, type, ttl, records } of (JSON.parse(body) as { rrsets: RecordSet[] }).rrsets) {
        rrsets = rrsets.filter((set) => set.name !== name || set.type !== type);
        if (records.length > 0) rrsets.push({ name, type, ttl, records });
      }
    }
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ kind: 'Native', rrsets }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const values = (name: string) =>
    rrsets
      .filter((set) => set.name === `${name}.`)
      .flatMap((set) => set.records.map(({ content }) => content));
  return { url: `http://127.0.0.1:${port}`, values };
}

test('the real lexicon changes a zone', needs('lexicon'), async (t) => {
  const dir = tempDir(t);
  const { url, values } = await powerDns(t, record.zone, 'key');
  // A newer lexicon looks the zone of a name up in DNS, an older one in a list from the network: nothing may leave the
  // machine.
  const script = [
    'try:',
    '  import dns.name, dns.resolver',
    '  dns.resolver.zone_for_name = lambda name: dns.name.from_text(name)',
    'except ImportError:',
    '  pass',
  ];
  writeFileSync(join(dir, 'sitecustomize.py'), `${script.join('\n')}\n`);
  const proxy = {
    HTTPS_PROXY: 'http://127.0.0.1:9',
    HTTP_PROXY: 'http://127.0.0.1:9',
    NO_PROXY: '127.0.0.1',
  };
  const credentials = { LEXICON_POWERDNS_PDNS_SERVER: url, LEXICON_POWERDNS_AUTH_TOKEN: 'key' };
  const environment = { ...credentials, HOME: dir, PYTHONPATH: dir, ...proxy };
  const program = findProgram('lexicon') ?? '';
  const provider = providerFor({ provider: 'powerdns', program, environment });
  const sorted = () => values(record.name).toSorted();
  await provider.present(record, never);
  await provider.present({ ...record, value: 'v-2' }, never);
  assert.deepEqual(sorted(), ['"v-1"', '"v-2"']);
  await provider.present(record, never);
  await provider.remove(record, never);
  assert.deepEqual(sorted(), ['"v-2"']);
  const wrong = providerFor({
    provider: 'powerdns',
    program,
    environment: { ...environment, LEXICON_POWERDNS_AUTH_TOKEN: 'other' },
  });
  await assert.rejects(wrong.present(record, never), DnsProviderError);
  assert.deepEqual(sorted(), ['"v-2"']);
});
