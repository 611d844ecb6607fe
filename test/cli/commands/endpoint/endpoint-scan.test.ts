/** `vault endpoint scan`, `found` and `adopt`: certificates in a network that the vault did not issue. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loopbackSetting } from '../../../harness/loopback-guard.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { freePort } from '../../../harness/processes/port.ts';
import { tempDir } from '../../../harness/temp-dir.ts';
import { serverAt } from '../../../harness/tls-servers.ts';

const openssl = needs('openssl');

type Found = { readonly address: string; readonly certificate: string | null; readonly names: string[] };

/** A server of the vault's certificate `web` at 127.0.11.1, and a foreign one at 127.0.11.2. */
async function network(t: TestContext) {
  const cli = commandLine(t, { environment: { VAULT_ENDPOINT_ALLOW: loopbackSetting } });
  const port = await freePort();
  const out = join(tempDir(t), 'web');
  await cli.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  await cli.done('certificate', 'export', '--name', 'web', '--out', out);
  const own =
    readFileSync(join(out, 'fullchain.crt'), 'utf8') + readFileSync(join(out, 'private.key'), 'utf8');
  const foreign = join(tempDir(t), 'foreign.pem');
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'],
    ...['-subj', '/CN=intranet', '-addext', 'subjectAltName=DNS:intranet.test,DNS:wiki.test'],
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-keyout', `${foreign}.key`, '-out', foreign],
  ]);
  const key = readFileSync(`${foreign}.key`, 'utf8');
  await serverAt(t, { host: '127.0.11.1', port }, own);
  await serverAt(t, { host: '127.0.11.2', port }, readFileSync(foreign, 'utf8') + key);
  const scan = (...more: string[]) => ['endpoint', 'scan', '127.0.11.0/30', '--port', String(port), ...more];
  return { cli, scan, keyFile: `${foreign}.key`, address: `127.0.11.2:${port}`, own: `127.0.11.1:${port}` };
}

test(
  'scan lists the servers whose certificate the vault does not have, and found all of them',
  openssl,
  async (t) => {
    const { cli, scan, address, own } = await network(t);
    const { stdout, stderr } = await cli.done(...scan('--rate', '200'));
    assert.match(
      stdout,
      new RegExp(`^ADDRESS .*\\n${address} +intranet.test wiki.test +CN=intranet .* no\\n$`),
    );
    assert.match(stderr, /Try: vault endpoint adopt --help\n$/);
    const all = await cli.json<Found[]>('endpoint', 'found', '--all');
    assert.deepEqual(
      all.map(({ address: at, certificate, names }) => [at, certificate, names]),
      [
        [own, 'web', ['web.test']],
        [address, null, ['intranet.test', 'wiki.test']],
      ],
    );
    assert.deepEqual((await cli.json<Found[]>('endpoint', 'found')).length, 1);
    const [one] = await cli.json<{ id: number; state: string; done: number }[]>('endpoint', 'scans');
    assert.deepEqual([one?.state, one?.done], ['finished', 4]);
    await cli.done('endpoint', 'remove-scan', String(one?.id));
    assert.deepEqual(await cli.json('endpoint', 'found', '--all'), []);
    assert.equal(
      (await cli.done('endpoint', 'found')).stderr,
      'No certificates found that are missing from the vault.\n  Try: vault endpoint found --all\n',
    );
    assert.equal(
      (await cli.done('endpoint', 'found', '--all')).stderr,
      'Nothing found yet.\n  Try: vault endpoint scan --help\n',
    );
  },
);

test(
  'adopt watches a server, or issues or imports the certificate that is expected there',
  openssl,
  async (t) => {
    const { cli, scan, address, keyFile } = await network(t);
    await cli.done(...scan('--rate', '200'));
    const endpoints = () =>
      cli
        .run('endpoint', 'list', '--json')
        .then(({ stdout }) => JSON.parse(stdout) as { address: string; certificate: string | null }[]);
    const again = async () => {
      await cli.done('endpoint', 'remove', address);
      assert.deepEqual(await endpoints(), []);
    };
    await cli.done('endpoint', 'adopt', address);
    assert.deepEqual(
      (await endpoints()).map(({ address: at, certificate }) => [at, certificate]),
      [[address, null]],
    );
    await cli.refused(['endpoint', 'adopt', address], /already an endpoint/);
    const later = ['--issue', '--name', 'intranet'];
    // The certificate of the next step has this name: nothing was created here.
    await cli.refused(
      ['endpoint', 'adopt', address, ...later],
      new RegExp(`then: vault endpoint update ${address} --certificate intranet`),
      2,
    );
    await again();
    assert.equal(
      (await cli.done('endpoint', 'adopt', address, ...later)).stderr,
      `Created certificate intranet; endpoint ${address} is expected to serve it.\n  Try: vault api-key create --help\n`,
    );
    assert.equal((await endpoints())[0]?.certificate, 'intranet');
    const { domains } = await cli.json<{ domains: string[] }>('certificate', 'show', '--name', 'intranet');
    assert.deepEqual(domains, ['intranet.test', 'wiki.test']);
    await again();
    assert.match(
      (await cli.done('endpoint', 'adopt', address, '--private-key', keyFile)).stderr,
      new RegExp(
        `^Imported certificate intranet\\.test; endpoint ${address} is expected to serve it\\.$`,
        'm',
      ),
    );
    assert.equal((await endpoints())[0]?.certificate, 'intranet.test');
    const checked = await cli.run('endpoint', 'check', address, '--json');
    assert.equal((JSON.parse(checked.stdout) as { certificate: string }[])[0]?.certificate, 'intranet.test');
  },
);

const refusals: readonly (readonly [what: string, args: readonly string[], stderr: RegExp])[] = [
  [
    'a public network',
    ['192.0.2.0/24'],
    /192\.0\.2\.0\/24 is not a private network\n.*--endpoint-allow 192\.0\.2\.0\/24/,
  ],
  ['a network around a private one', ['192.168.0.0/15'], /192\.168\.0\.0\/15 is not a private network/],
  ['a name', ['intranet.test'], /"intranet\.test" is not a network/],
  ['a network with bits of a host', ['10.0.0.1/24'], /"10\.0\.0\.1\/24" is not a network/],
  ['too many addresses', ['10.0.0.0/8'], /more than 1048576 addresses and ports/],
  ['too many addresses of IPv6', ['fd00::/64'], /more than 1048576 addresses and ports/],
  ['a port that does not exist', ['10.0.0.0/24', '--port', '443,70000'], /ports/],
  ['a port that is a word', ['10.0.0.0/24', '--port', 'https'], /ports/],
  ['a rate that is too high', ['10.0.0.0/24', '--rate', '1000'], /rate/],
  [
    'settings that "vault serve" would not have',
    ['10.0.0.0/24', '--every', '7d', '--endpoint-forbid', '10.0.0.1'],
    /--endpoint-forbid and --every exclude each other/,
  ],
  ['an interval that is too short', ['10.0.0.0/24', '--every', '5m'], /"5m" is not an interval/],
];

test('scan refuses what it may not or cannot search, and adds nothing', async (t) => {
  const cli = commandLine(t);
  await cli.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  for (const [what, args, stderr] of refusals) {
    const { code, stdout, stderr: said } = await cli.run('endpoint', 'scan', ...args);
    assert.deepEqual([what, code === 0, stdout], [what, false, '']);
    assert.match(said, stderr, what);
  }
  assert.deepEqual(await cli.json('endpoint', 'scans'), []);
});

test('adopt and remove-scan refuse what is not there and what contradicts itself', async (t) => {
  const cli = commandLine(t);
  await cli.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  await cli.refused(['endpoint', 'adopt', '10.0.0.7:443'], /No scan found a server at 10\.0\.0\.7:443/);
  await cli.refused(['endpoint', 'adopt', '10.0.0.7', '--issuer', 'local-ca'], /--issuer needs --issue/, 2);
  await cli.refused(
    ['endpoint', 'adopt', '10.0.0.7', '--name', 'x'],
    /--name needs --issue or --private-key/,
    2,
  );
  await cli.refused(['endpoint', 'remove-scan', '7'], /Scan not found/);
  await cli.refused(['endpoint', 'remove-scan', 'x'], /"x" is not the number of a scan/, 2);
});

test('a regular scan is added for the server, and scans lists it', async (t) => {
  const cli = commandLine(t);
  await cli.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  const { stderr } = await cli.done('endpoint', 'scan', '10.0.0.0/24', '--every', '7d');
  assert.match(stderr, /^Added scan 1; "vault serve" runs it\.\n/);
  assert.match(
    (await cli.done('endpoint', 'scans')).stdout,
    /\n1 +10\.0\.0\.0\/24 +443 +7d +waiting +0 % +0 +-\n/,
  );
});
