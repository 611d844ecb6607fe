/** Issuers, their profiles, private CAs, ACME accounts and DNS providers: the same on this machine and at a server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { companySigns, confinedCompany } from '../../harness/ca/company-ca.ts';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { fakeDns } from '../../harness/dns/fake-dns.ts';
import { bothWays } from '../../harness/processes/both-ways.ts';
import { commandLine, commandWords } from '../../harness/processes/command-line.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { serve, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

test('each command about ACME issuers and their accounts prints the same', async (t) => {
  const hmac = Buffer.alloc(32, 7);
  const ca = await scriptedAcme(t, {
    tls: true,
    termsOfService: 'https://ca.example/terms',
    profiles: { shortlived: 'six days' },
  });
  const bound = await scriptedAcme(t, { externalAccounts: { kid: hmac } });
  const other = await scriptedAcme(t, { tls: true });
  const trusting = `--directory ${ca.directoryUrl} --ca-file ca.pem`;
  const binding = `--name bound --directory ${bound.directoryUrl}`;
  await bothWays(
    t,
    [
      'issuer list',
      'issuer list --json',
      'issuer add --name ca',
      `issuer add --name ca ${trusting}`,
      `issuer add --name ca ${trusting} --accept-terms --profile longlived`,
      `issuer add --name ca --directory ${ca.directoryUrl} --accept-terms`,
      `issuer add --name ca --directory ${ca.directoryUrl} --ca-file other.pem --accept-terms`,
      `issuer add --name ca --directory ${ca.directoryUrl} --ca-file key.txt --accept-terms`,
      'issuer add --name ca --directory https://127.0.0.1:1/directory',
      'issuer add --name ca --directory http://192.0.2.1/directory',
      'issuer add --name ca --directory https://169.254.0.1/directory',
      `issuer add --name ca --directory ${bound.origin}/nothing`,
      `issuer add --name Bad! ${trusting} --accept-terms`,
      `issuer add --name ca ${trusting} --accept-terms --email nothing`,
      `issuer add --name ca ${trusting} --accept-terms --email ops@example.test`,
      `issuer add --name ca ${trusting} --accept-terms`,
      `issuer add ${binding}`,
      `issuer add ${binding} --eab-kid kid`,
      `issuer add ${binding} --eab-hmac-key-file key.txt`,
      `issuer add ${binding} --eab-kid kid --eab-hmac-key-file ca.pem`,
      `issuer add ${binding} --eab-kid kid --eab-hmac-key-file key.txt`,
      'issuer list',
      'issuer list --json',
      'certificate create --name web --domain www.example.test --issuer ca --wait',
      'certificate create --name app --domain app.example.test --issuer bound --wait',
      'acme-account list',
      'acme-account list --json',
      'acme-account rollover --id 1',
      'acme-account rollover --id 9',
      'acme-account delete --id 1 --yes',
      'acme-account delete --id nothing --yes',
      'acme-account deactivate --id 1',
      'acme-account rollover --id 1',
      'issuer update --name ca --profile shortlived --preferred-chain Root',
      'issuer update --name ca --profile longlived',
      'issuer update --name ca --profile none --email none',
      'issuer update --name ca --ca-file none',
      'issuer update --name ca --ca-file other.pem',
      'issuer update --name ca',
      'issuer update --name cb --email ops@example.test',
      'issuer update --name letsencrypt --email ops@example.test',
      'issuer update --name local-ca --email ops@example.test',
      'issuer update --name ca --lifetime 30d',
      'issuer update --name bound --eab-kid other',
      'issuer list --json',
      'issuer remove --name ca --yes',
      'issuer remove --name cb --yes',
      'issuer remove --name local-ca --yes',
      'issuer remove --name bound',
      'certificate delete --name app',
      `issuer update --name ca --directory ${other.directoryUrl} --ca-file other.pem`,
      'acme-account delete --id 1',
      'acme-account delete --id 2',
      'issuer remove --name bound --yes',
      'issuer list',
      'acme-account delete --id 2',
      'acme-account delete --id 2 --yes',
      'acme-account list',
    ],
    { 'ca.pem': ca.ca ?? '', 'other.pem': other.ca ?? '', 'key.txt': hmac.toString('base64url') },
  );
});

test('each command about private CAs and their profiles prints the same', needs('openssl'), async (t) => {
  const { leaf } = makeChain(tempDir(t));
  await bothWays(
    t,
    [
      'issuer add --name local --type local-ca --permit-domain a..b',
      'issuer add --name staging --type local-ca --path-length 9',
      'issuer add --name staging --type local-ca --email ops@example.test',
      'issuer add --name staging --type local-ca --permit-domain staging.example --permit-ip 192.0.2.0/24 --lifetime 30d --key-type ec384 --common-name Staging --path-length 2',
      'issuer add --name staging --type local-ca',
      'issuer add --name Staging --type local-ca',
      'issuer list',
      'issuer list --json',
      'certificate create --name web --domain www.staging.example --issuer staging',
      'certificate renew --name web --wait',
      'certificate show --name web',
      'issuer update --name staging --permit-domain eu.staging.example',
      'issuer update --name staging --permit-domain elsewhere.example',
      'issuer update --name staging --permit-domain eu.staging.example --force',
      'issuer update --name staging --permit-domain staging.example --lifetime none --key-type none',
      'issuer update --name staging --permit-ip none',
      'issuer update --name nothing --lifetime 30d',
      'issuer update --name staging --force',
      'issuer list --json',
      'issuer profile list staging',
      'issuer profile list stagin',
      'issuer profile add staging web --usage server --key-type ec256 --key-type rsa2048 --lifetime 30d --max-lifetime 90d --name-type dns --permit-domain staging.example',
      'issuer profile add staging web --usage server',
      'issuer profile add staging people --subject O=Example --name-type email --json',
      'issuer profile add staging bad --lifetime 90d --max-lifetime 30d',
      'issuer profile add staging bad --lifetime ever',
      'issuer profile add nothing web',
      'issuer profile list staging',
      'issuer profile list staging --json',
      'issuer profile show staging web',
      'issuer profile show staging web --json',
      'issuer profile show staging wbe',
      'issuer profile show nothing web',
      'issuer profile update staging web --lifetime 7d --max-lifetime 30d',
      'issuer profile update staging web --usage none --json',
      'issuer profile update staging web --lifetime 365d',
      'issuer profile update staging wbe --lifetime 7d',
      'issuer profile update staging web',
      'certificate create --name shop --domain shop.staging.example --issuer staging --profile web',
      'issuer profile remove staging web',
      'issuer profile remove staging wbe',
      'issuer profile remove staging people',
      'issuer profile remove staging people',
      'ca show',
      'ca show --issuer staging',
      'ca show --issuer stagin',
      'ca rotate --issuer staging',
      'ca rotate --issuer staging',
      'ca rotate --issuer nothing',
      'ca rotate',
      'ca show',
      'ca import --chain leaf.pem',
      'ca csr',
      'ca csr',
      'ca csr --new',
      'ca csr --issuer staging',
      'ca csr --issuer nothing',
      'ca import --chain leaf.pem',
      'ca import --chain key.pem',
      'ca import --chain empty.pem',
      'ca import --chain leaf.pem --issuer nothing',
      'issuer remove --name staging',
      'certificate delete --name web',
      'certificate delete --name shop',
      'api-key create --name shop --scope certificates:sign --certificate * --profile staging/web',
      'issuer remove --name staging --yes',
      'api-key revoke shop',
      'issuer remove --name staging',
      'issuer remove --name staging --yes',
      'issuer list',
    ],
    {
      'leaf.pem': leaf.certificatePem,
      'key.pem': leaf.keyPem,
      'empty.pem': '',
    },
  );
});

const secretFile = (type: string, zone = 'a.test') =>
  `dns-provider add --name dns --type ${type} --zone ${zone} --secret-file secret.yaml`;

test('each command about DNS providers prints the same', async (t) => {
  await bothWays(
    t,
    [
      'dns-provider list',
      'dns-provider list --json',
      'dns-provider add --name dns --type clodflare --zone a.test',
      'dns-provider add --name dns --type cloudflare --zone a.test',
      secretFile('cloudflare', '*.a.test'),
      secretFile('cloudflare'),
      secretFile('cloudflare').replace('dns ', 'DNS '),
      secretFile('webhook'),
      'dns-provider add --name other --type webhook --zone a.test --secret-file broken.yaml',
      'dns-provider add --name other --type webhook --zone a.test --provider gandi',
      'dns-provider add --name by-hand --type manual --zone b.test',
      'dns-provider add --name by-hand --type manual --zone b.test',
      'dns-provider list',
      'dns-provider remove --name dms',
      'dns-provider remove --name dns',
      'dns-provider remove --name dns',
      'dns-provider list --json',
    ],
    { 'secret.yaml': 'correct-horse-battery', 'broken.yaml': 'url: [' },
  );
});

/** A vault at a server, and commands that work on it. */
async function site(t: TestContext, args: readonly string[] = []) {
  const line = commandLine(t);
  const { stdout: key } = await line.done('api-key', 'create', '--name=remote', '--role=admin');
  const token = line.file(key);
  chmodSync(token, 0o600);
  const { url } = await serve(t, line.data, { args });
  const run = (words: string) =>
    vault(commandWords(words), { environment: { CERTVAULT_SERVER: url, CERTVAULT_TOKEN_FILE: token } });
  return { ...line, run };
}

test(
  'a private CA at a server issues under the root of a company after ca import',
  needs('openssl'),
  async (t) => {
    const { run } = await site(t);
    const dir = tempDir(t);
    const { root, issuing } = confinedCompany(dir);
    await run('certificate create --name web --domain www.corp.example');
    const request = join(dir, 'request.csr');
    const asked = await run(`ca csr --out ${request}`);
    assert.equal(asked.code, 0, asked.stderr);
    const chain = join(dir, 'chain.pem');
    const sent = readFileSync(request, 'utf8');
    writeFileSync(chain, companySigns(dir, issuing, sent, { days: 1825 }) + issuing.pem + root.pem);
    assert.match(
      (await run(`ca import --chain ${chain}`)).stderr,
      /^local-ca issues under CN=Example Corp Root,O=Example Corp from now on, until 20\d\d-.*Z\.\nQueued 1 renewal, over a day; "vault serve" runs it\.\nClients of local-ca have to trust the root of the company now\. The roots of local-ca for clients include the former one until 20\d\d-\d\d-\d\dT00:00:00Z\.\n$/,
    );
    await run(`ca csr --out ${request} --force`);
    writeFileSync(
      chain,
      companySigns(dir, issuing, readFileSync(request, 'utf8'), { days: 900 }) + issuing.pem + root.pem,
    );
    assert.match(
      (await run(`ca import --chain ${chain}`)).stderr,
      /^local-ca issues under CN=Example Corp Root,O=Example Corp from now on, until 20\d\d-[^\n]*\n$/,
    );
  },
);

test('a DNS provider at a server is tested there, and types that run programs are refused', async (t) => {
  const dns = await fakeDns(t);
  const receiver = createServer(async (request, response) => {
    const { fqdn, value } = JSON.parse(await text(request)) as { fqdn: string; value: string };
    dns.records = request.url === '/present' ? { [`TXT ${fqdn.replace(/\.$/, '')}`]: [value] } : {};
    response.end('OK');
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.after(() => receiver.close());
  const { run, file, done } = await site(t, ['--resolver', dns.server]);
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const secret = file(`url: ${url}\nusername: vault\npassword: correct-horse-battery\n`);
  const added = await run(
    `dns-provider add --name dns --type webhook --zone example.test --secret-file ${secret}`,
  );
  assert.equal(added.code, 0, added.stderr);
  const tried = await run('dns-provider test --name dns --domain www.example.test');
  assert.equal(tried.stdout, 'dns can present dns-01 challenges for www.example.test\n', tried.stderr);
  assert.match(
    tried.stderr,
    /^Creating _acme-challenge\.www\.example\.test TXT "[\w-]{43}"\nWaiting until the record is visible\nRecord is visible\nRecord removed\n$/,
  );
  const unknown = await run('dns-provider test --name dms --domain www.example.test');
  assert.equal(unknown.stderr, 'vault: unknown DNS provider "dms"\n  Did you mean "dns"?\n');
  const outside = await run('dns-provider test --name dns --domain other.test');
  assert.equal(
    outside.stderr,
    'vault: _acme-challenge.other.test is in none of the zones of dns: example.test\n' +
      '  Add the zone to the provider, or point a CNAME to a name in one of its zones.\n',
  );
  const resolved = await run(
    `dns-provider test --name dns --domain www.example.test --resolver ${dns.server}`,
  );
  assert.deepEqual(
    [resolved.code, resolved.stderr],
    [2, 'vault: --resolver and --server exclude each other\n  The server asks its own resolvers.\n'],
  );
  const settings = file('command: /bin/true\n');
  const hook = await run(`dns-provider add --name hook --type exec --zone a.test --secret-file ${settings}`);
  assert.deepEqual(
    [hook.code, hook.stderr],
    [
      1,
      "vault: providers of type exec run local programs and can only be added on the vault's host\n" +
        '  Run "vault dns-provider add --type exec" there.\n',
    ],
  );
  await done(...commandWords('dns-provider add --name by-hand --type manual --zone b.test'));
  const byHand = await run('dns-provider test --name by-hand --domain b.test');
  assert.match(
    byHand.stderr,
    /^vault: by-hand is a manual provider, which is tested only on the vault's machine\n/,
  );
});

test('a name of dots never makes the path of something else', async (t) => {
  const { run, json } = await site(t);
  await run('issuer add --name staging --type local-ca');
  for (const words of [
    'issuer profile remove staging ..',
    'acme-account delete .. --yes',
    'issuer remove .. --yes',
  ]) {
    assert.equal((await run(words)).code, 1, words);
  }
  assert.equal((await json<unknown[]>('issuer', 'list')).length, 2);
});
