/** What the script that installs trust accepts: from which server, and which certificates. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, type TestContext, test } from 'node:test';
import { publicKeyPin } from '../../src/crypto/public-key-pin.ts';
import type { Answer } from '../harness/client/relay.ts';
import { needs, type Skip } from '../harness/processes/missing-program.ts';
import { bundleOf, fingerprintOf, rootNamed, trustMachine } from './trust-machine.ts';

const openssl = needs('openssl');
const also = (program: string): Skip => (openssl.skip === undefined ? needs(program) : openssl);
const curl = also('curl');

const expired = () => rootNamed('expired', { notBefore: Date.UTC(2020, 0), notAfter: Date.UTC(2021, 0) });
const leaf = () => rootNamed('leaf', { role: 'leaf' });
const crossSigned = () => rootNamed('cross-signed', { issuer: rootNamed('root-two') });
const serve = (body: string, status = 200): Answer => ({ status, body });
const onePem = () => rootNamed('root-one').certificatePem;
/** The certificate with the bytes changed. */
const changed = (change: (der: Buffer) => Buffer): string => {
  const der = Buffer.from(new X509Certificate(onePem()).raw);
  const base64 = change(der).toString('base64');
  return `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
};

const refused: Readonly<Record<string, readonly [() => Answer, number, RegExp]>> = {
  'a web page': [
    () => serve('<html><body>Sign in to the network</body></html>'),
    11,
    /is not a complete list of certificates in PEM format; nothing was changed\nThe response is a web page\. Try/,
  ],
  'an empty file': [() => serve(''), 11, /is not a complete list/],
  'half a certificate': [() => serve(onePem().slice(0, 300)), 11, /is not a complete list/],
  'a private key': [() => serve(rootNamed('root-one').keyPem + onePem()), 11, /is not a complete list/],
  'text around a certificate': [() => serve(`${onePem()}; rm -rf /\n`), 11, /is not a complete list/],
  'too many certificates': [() => serve(onePem().repeat(21)), 11, /is not a complete list/],
  'more than a megabyte': [() => serve('\n'.repeat(5_000_000)), 10, /the response has more than a megabyte/],
  'the certificate of a server': [
    () => bundleOf(rootNamed('root-one'), leaf()),
    11,
    /contains "leaf", which is not the certificate of a CA; nothing was changed/,
  ],
  'a certificate that is cut off': [
    () => serve(changed((der) => der.subarray(0, der.length - 20))),
    11,
    /contains a certificate that cannot be parsed/,
  ],
  'a certificate with more bytes': [
    () => serve(changed((der) => Buffer.concat([der, Buffer.alloc(30)]))),
    11,
    /contains a certificate that cannot be parsed/,
  ],
  'a certificate with wrong lengths': [
    () => serve(changed((der) => der.fill(0xff, 20, 60))),
    11,
    /contains a certificate that cannot be parsed/,
  ],
  'an expired root': [
    () => bundleOf(expired()),
    11,
    /skipped the root "expired": it expired on 2021-01-01, and this machine's clock says .*\n.*has no root certificate that can be added/,
  ],
  'an intermediate alone': [() => bundleOf(crossSigned()), 11, /has no root certificate that can be added/],
  'an error': [() => serve('{}', 404), 10, /: curl: \(22\) .*404/],
  'a redirect': [
    () => ({ status: 302, headers: { Location: 'https://elsewhere.example/ca.crt' }, body: onePem() }),
    10,
    /unexpected status 302; redirects are not followed/,
  ],
};

suite('nothing changes if the download is not usable', { concurrency: 2 }, () => {
  for (const [what, [answer, code, message]] of Object.entries(refused)) {
    test(`nothing changes if the server sends ${what}`, curl, async (t) => {
      const machine = await trustMachine(t);
      machine.serve = answer();
      const { code: exit, stderr } = await machine.run();
      assert.equal(exit, code, stderr);
      assert.match(stderr, message);
      assert.deepEqual([machine.anchors(), machine.calls()], [[], []]);
    });
  }
});

test('valid roots are added without expired ones and without intermediates', curl, async (t) => {
  const machine = await trustMachine(t);
  machine.serve = bundleOf(expired(), crossSigned(), rootNamed('root-one'), rootNamed('root-two'));
  assert.equal((await machine.run()).code, 0);
  assert.deepEqual(machine.trusted(), ['root-one', 'root-two']);
});

test('the fingerprint matches that of openssl for each type of key', curl, async (t) => {
  const machine = await trustMachine(t);
  const kinds = (['ec256', 'ec384', 'rsa2048', 'ed25519'] as const).map((keyAlgorithm) =>
    rootNamed(keyAlgorithm, { keyAlgorithm, subject: `/C=DE/O=Ümlaut "quoted" $(id)/CN=${keyAlgorithm}` }),
  );
  machine.serve = bundleOf(...kinds);
  const { stderr } = await machine.run();
  for (const root of kinds) assert(stderr.includes(`\n  ${fingerprintOf(root)}\n`), stderr);
  assert.equal(machine.trusted().length, 4);
});

test(
  'over plain http from another machine, only a root with a known fingerprint is added',
  curl,
  async (t) => {
    const machine = await trustMachine(t);
    const other = ['--server', 'http://vault.example', '--root', machine.image];
    const without = await machine.runAlone(other);
    assert.equal(without.code, 2);
    assert.match(
      without.stderr,
      /anyone on the network to vault\.example could choose .*\nTry: https, or --fingerprint/,
    );
    // Redirects the address to the test's server.
    const environment = { http_proxy: machine.url };
    const wrong = await machine.runAlone([...other, '--fingerprint', fingerprintOf(rootNamed('root-two'))], {
      environment,
    });
    assert.equal(wrong.code, 11, wrong.stderr);
    assert.match(
      wrong.stderr,
      /skipped the root "root-one": its SHA-256 fingerprint is not in --fingerprint\n/,
    );
    assert.deepEqual(machine.anchors(), []);
    const right = fingerprintOf(rootNamed('root-one')).replaceAll(':', '').toLowerCase();
    const added = await machine.runAlone([...other, '--fingerprint', right], { environment });
    assert.equal(added.code, 0, added.stderr);
    assert.deepEqual(machine.trusted(), ['root-one']);
  },
);

/** A machine with one download tool whose vault serves HTTPS with a certificate of `root-one`. */
async function secureMachine(t: TestContext, tool: 'curl' | 'wget') {
  const server = rootNamed('server', { role: 'leaf', names: 'IP:127.0.0.1', issuer: rootNamed('root-one') });
  const machine = await trustMachine(t, { tls: { cert: server.certificatePem, key: server.keyPem } });
  machine.fake(tool === 'curl' ? 'wget' : 'curl', 'exit 127');
  return { machine, pin: publicKeyPin(new X509Certificate(server.certificatePem)) };
}

for (const tool of ['curl', 'wget'] as const) {
  test(`the server is verified, with ${tool}`, also(tool), async (t) => {
    const { machine, pin } = await secureMachine(t, tool);
    const wrongPin = `sha256//${'A'.repeat(43)}=`;
    const refusals = [
      [[], 10, /\nTry: --pin; on the vault, "vault certificate show --name NAME" prints it/],
      [
        ['--pin', wrongPin],
        10,
        /the public key of the server does not match --pin\nTry: --pin with the current/,
      ],
      [
        ['--ca-file', rootNamed('root-two').certificatePath],
        10,
        /\nTry: --ca-file with the root certificate/,
      ],
      [['--ca-file', rootNamed('root-one').certificatePath, '--pin', wrongPin], 10, /does not match --pin/],
      [['--fingerprint', fingerprintOf(rootNamed('root-two'))], 11, /is not in --fingerprint/],
    ] as const;
    for (const [args, code, message] of refusals) {
      const { code: exit, stderr } = await machine.run(args);
      assert.equal(exit, code, `${args}: ${stderr}`);
      assert.match(stderr, message);
    }
    assert.deepEqual(machine.anchors(), []);
    const ways = [
      ['--pin', `${wrongPin},${pin}`],
      ['--ca-file', rootNamed('root-one').certificatePath],
      ['--fingerprint', fingerprintOf(rootNamed('root-one'))],
    ];
    for (const way of ways) {
      const { code, stderr } = await machine.run(way);
      assert.equal(code, 0, `${way}: ${stderr}`);
      assert.deepEqual(machine.trusted(), ['root-one']);
      assert.equal((await machine.run(['--uninstall'])).code, 0);
    }
  });
}

test('without curl and GNU wget the script refuses to download', openssl, async (t) => {
  const machine = await trustMachine(t);
  for (const tool of ['curl', 'wget']) machine.fake(tool, 'exit 127');
  const { code, stderr } = await machine.run();
  assert.equal(code, 1);
  assert.match(stderr, /install curl or GNU wget; other programs do not verify the server reliably\n$/);
});

const misuses: readonly (readonly [readonly string[], RegExp])[] = [
  [['--server', 'vault.example'], /--server: "vault\.example" must begin with https:\/\//],
  [['--server', 'https://a b'], /--server: "https:\/\/a b" is not a URL/],
  [['--server', 'https://vault.example:x'], /has no valid port/],
  [[], /--server is missing/],
  [['--servr', 'x'], /unknown option "--servr"; see --help/],
  [['--pin', 'sha256//abc'], /must be sha256\/\/ followed by 44 characters/],
  [['--pin='], /--pin must not be empty/],
  [['--fingerprint', 'AB:CD'], /is not a SHA-256 fingerprint, 64 hexadecimal digits/],
  [['--server', 'https://v.test', '--root', '/no/such/place'], /--root: no such directory/],
  [['--server', 'https://v.test', '--root', '/', '--java-store', 'x'], /--root changes only the system's/],
  [['--server', 'https://v.test', '--no-system', '--no-java', '--no-nss'], /nothing is left to change/],
  [['--uninstall=yes'], /--uninstall takes no value/],
  [['--ca-file'], /--ca-file needs a value/],
];

test('invalid options are rejected with exit code 2', openssl, async (t) => {
  const machine = await trustMachine(t);
  for (const [args, message] of misuses) {
    const { code, stderr } = await machine.runAlone(args);
    assert.equal(code, 2, `${args}: ${stderr}`);
    assert.match(stderr, message);
  }
  const help = await machine.runAlone(['--help']);
  assert.deepEqual([help.code, help.stderr], [0, '']);
  for (const option of ['--pin', '--fingerprint', '--uninstall'])
    assert(help.stdout.includes(`\n    ${option} `));
});
