/** The provider `lexicon`: how the program is called, and the real one where it is installed. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { realWorld } from '../../../src/base/world.ts';
import { DnsProviderError } from '../../../src/dns/dns-provider.ts';
import { lexicon } from '../../../src/dns/providers/lexicon.ts';
import { fakeContext } from '../../harness/fake-provider.ts';
import type { HookCall } from '../../harness/hook-script.ts';
import { findProgram, needs } from '../../harness/missing-program.ts';
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

test('it creates and deletes one value, with the credentials in the environment and never among the arguments', async (t) => {
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

test('a failure quotes what lexicon said, without the credentials; a missing program is named', async (t) => {
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
  test(`${JSON.stringify(settings)} is refused`, () => {
    assert.match(String(lexicon.config.safeParse(settings).error), message);
  });
}

test('the real lexicon changes a zone', needs('lexicon'), async (t) => {
  const dir = tempDir(t);
  const zone = join(dir, 'zone');
  writeFileSync(
    zone,
    '$ORIGIN sub.example.com.\n$TTL 60\n@ IN SOA ns1 admin 1 60 60 60 60\n@ IN NS ns1\nns1 IN A 192.0.2.1\n',
  );
  // It looks the zone of a name up in DNS, or its suffix in a list from the network: nothing here may leave the machine.
  writeFileSync(
    join(dir, 'sitecustomize.py'),
    'import dns.name, dns.resolver\ndns.resolver.zone_for_name = lambda name: dns.name.from_text(name)\n',
  );
  const proxy = { HTTPS_PROXY: 'http://127.0.0.1:9', HTTP_PROXY: 'http://127.0.0.1:9' };
  const environment = { LEXICON_LOCALZONE_FILENAME: zone, HOME: dir, PYTHONPATH: dir, ...proxy };
  const program = findProgram('lexicon') ?? '';
  const provider = providerFor({ provider: 'localzone', program, environment });
  const values = () =>
    [...readFileSync(zone, 'utf8').matchAll(/^_acme-challenge\.www .*TXT "(.*)"$/gm)].map(
      ([, value]) => value,
    );
  await provider.present(record, never);
  await provider.present({ ...record, value: 'v-2' }, never);
  assert.deepEqual(values().toSorted(), ['v-1', 'v-2']);
  await provider.present(record, never);
  await provider.remove(record, never);
  assert.deepEqual(values(), ['v-2']);
  await provider.remove(record, never);
});
