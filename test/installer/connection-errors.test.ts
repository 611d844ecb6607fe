/** What the installer reports if there is no response, or one that refuses: what failed, and the option that helps. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type Chain, type ChainOptions, makeChain } from '../harness/ca/openssl-chain.ts';
import { machine, type Shell, type Tool } from '../harness/client/installer.ts';
import { type Answer, relay } from '../harness/client/relay.ts';
import { usual } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { fullListener } from './full-listener.ts';
import { everyTool, inTurnOfShells, type Place } from './places.ts';

const limits = {
  SERVICE_API_KEY: 'vk_public.secret',
  CERTIFICATE_VAULT_FETCH_TRIES: '1',
  CERTIFICATE_VAULT_CONNECT_SECONDS: '1',
  CERTIFICATE_VAULT_FETCH_SECONDS: '3',
};

/** Installs from this server, which fails, and returns the report. */
async function report(
  t: TestContext,
  place: Partial<Place>,
  args: readonly string[],
  environment = {},
): Promise<string> {
  const client = machine(t, place);
  const failed = await client.run([...usual(client), ...args], {
    environment: { ...limits, ...environment },
  });
  assert.equal(failed.code, 10, failed.stderr);
  assert.doesNotMatch(failed.stderr, /web page|sslcerts|vk_public/);
  return failed.stderr;
}

/** A server with a certificate, and the options to trust its root. */
async function secure(
  t: TestContext,
  options: ChainOptions = {},
): Promise<{ url: string; chain: Chain; ca: string[] }> {
  const chain = makeChain(tempDir(t), { names: 'IP:127.0.0.1', ...options });
  const { url } = await relay(t, () => '', { cert: chain.fullchainPem, key: chain.leaf.keyPem });
  return { url, chain, ca: ['--server', url, '--ca-file', chain.root.certificatePath] };
}

/** A server that accepts connections, and then does this. */
async function mute(t: TestContext, close: boolean): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    if (close) socket.once('data', () => socket.destroy());
    t.after(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = server.address();
  assert(address !== null && typeof address === 'object');
  return address.port;
}

const year = (offset: number) => Date.UTC(new Date().getUTCFullYear() + offset, 0, 1);

/** What fails: the options of the installer, and what it reports. */
type Failure = readonly [
  name: string,
  arrange: (t: TestContext) => Promise<readonly string[]>,
  reported: RegExp,
];

const failures: readonly Failure[] = [
  [
    'an unknown host',
    // A part of a host name has at most 63 characters.
    async () => ['--server', `https://${'x'.repeat(64)}.example`],
    /: cannot resolve the host name x{64}\.example\nTry: --server with another address/,
  ],
  [
    'a refused connection',
    async () => ['--server', 'https://127.0.0.1:1'],
    /fullchain\.crt: (?:127\.0\.0\.1 port 1 refused the connection|cannot connect to 127\.0\.0\.1 port 1)\nTry: start/,
  ],
  [
    'an unknown CA',
    async (t) => ['--server', (await secure(t)).url],
    /does not trust the certificate of 127\.0\.0\.1 port \d+: its CA is unknown\nTry: --ca-file .*, or --pin/,
  ],
  [
    'another CA',
    async (t) => {
      const other = makeChain(tempDir(t), { label: 'Stranger' }).root.certificatePath;
      return ['--server', (await secure(t)).url, '--ca-file', other];
    },
    /is not signed by the CA in --ca-file\nTry: --ca-file with the root certificate that signed it/,
  ],
  [
    'a certificate for another name',
    async (t) => (await secure(t, { names: 'DNS:other.example' })).ca,
    /is not valid for the name 127\.0\.0\.1\nTry: --server with a name in that certificate/,
  ],
  [
    'an expired certificate of the vault',
    async (t) => (await secure(t, { notBefore: year(-2), notAfter: year(-1) })).ca,
    /port \d+ has expired, and this machine's clock says .*\nFix: renew it on the vault, or set the clock/,
  ],
  [
    'a certificate of the vault that is not valid yet',
    async (t) => (await secure(t, { notBefore: year(2), notAfter: year(3) })).ca,
    /port \d+ is not valid yet, and this machine's clock says .*\nFix: set the clock/,
  ],
  [
    'a server that speaks plain HTTP',
    async (t) => ['--server', (await relay(t, () => '')).url.replace('http:', 'https:')],
    /127\.0\.0\.1 port \d+ does not speak TLS\nTry: --server with the port for HTTPS/,
  ],
  [
    'a server that closes the connection',
    async (t) => ['--server', `http://127.0.0.1:${await mute(t, true)}`],
    /closed the connection before its response was complete\nTry: --server https:\/\/127\.0\.0\.1:\d+, if/,
  ],
  [
    'a server that does not answer',
    async (t) => ['--server', `http://127.0.0.1:${await mute(t, false)}`],
    /: no complete response within 3 seconds/,
  ],
];

/** openssl speaks only TLS, and nc only plain HTTP. */
function canUse(tool: Tool, name: string): boolean {
  const isPlain = /closes|not answer/.test(name);
  const isEither = name === 'a refused connection';
  return tool === 'openssl' ? !isPlain : tool.startsWith('nc') ? isPlain || isEither : true;
}

for (const [tool, isThere] of everyTool()) {
  for (const [name, arrange, reported] of failures.filter(([title]) => canUse(tool, title))) {
    test(`${name} is reported as such, with ${tool}`, isThere, async (t) => {
      const args = await arrange(t);
      const plain = tool.startsWith('nc') ? args.map((arg) => arg.replace('https:', 'http:')) : args;
      assert.match(await report(t, { tool }, plain), reported);
    });
  }
}

for (const tool of ['curl', 'wget'] as const) {
  test(`another key than --pin is reported as such, with ${tool}`, needs(tool), async (t) => {
    const { url } = await secure(t);
    const args = ['--server', url, '--pin', `sha256//${'A'.repeat(43)}=`];
    assert.match(
      await report(t, { tool }, args),
      /the public key of 127\.0\.0\.1 port \d+ does not match --pin\nTry: --pin with the current key/,
    );
  });

  test(`a connection that times out is reported as such, with ${tool}`, needs(tool), async (t) => {
    const url = `http://127.0.0.1:${await fullListener(t)}`;
    assert.match(
      await report(t, { tool }, ['--server', url], { CERTIFICATE_VAULT_FETCH_TRIES: '2' }),
      /: no connection to 127\.0\.0\.1 port \d+ within 1 seconds \(2 attempts\)\nTry: check the address/,
    );
  });
}

test('a TLS handshake that times out is reported as such', needs('curl'), async (t) => {
  const url = `https://127.0.0.1:${await mute(t, false)}`;
  assert.match(
    await report(t, { tool: 'curl' }, ['--server', url]),
    /port \d+ accepted the connection, but no TLS handshake within 1 seconds/,
  );
});

const problem = (status: number, detail: string): Answer => ({
  status,
  headers: { 'Content-Type': 'application/problem+json' },
  body: JSON.stringify({ status, code: 'invalid_request', detail }),
});

const answers: readonly [string, Answer, RegExp][] = [
  [
    'the detail of a problem',
    problem(400, 'The "name" is\tnot valid: \u001b[31mä\\b.'),
    /: unexpected status 400: The "name" is not valid: \?\[31m\\b\n/,
  ],
  [
    'what a key lacks',
    problem(403, 'Your key lacks it.'),
    /403: .* permission for this file: Your key lacks it\n/,
  ],
  [
    'the new address of a vault that now serves HTTPS',
    problem(400, 'This address serves plain HTTP. Use it only with https://vault.example:8443.'),
    /unexpected status 400: .*8443\nTry: --server https:\/\/vault\.example:8443\n/,
  ],
  [
    'the HTTPS address of a port that now requires HTTPS',
    problem(400, 'This port requires HTTPS. Use https://. Revoke the key.'),
    /unexpected status 400: .*\nTry: --server https:\/\/127\.0\.0\.1:\d+\n/,
  ],
  [
    'the new address of a vault that moved',
    {
      status: 301,
      headers: { Location: 'https://new.example/vault/api/v1/certificates/web/fullchain.crt' },
    },
    /refused to follow a redirect to https:.* with the API key\nTry: --server https:\/\/new\.example\/vault, if/,
  ],
  [
    'the address of another redirect',
    { status: 302, headers: { Location: '/login' } },
    /refused to follow a redirect to \/login with the API key\nTry: that address as --server/,
  ],
  [
    'what to do without a valid key',
    { status: 401 },
    /401: .* or expired\nFix: create the job again with a new key, or .* --set-key\n/,
  ],
  ['no detail of a page', { status: 502, body: '<p>"detail": x</p>' }, /: unexpected status 502\n/],
];

async function refusals(t: TestContext, tool: Tool, shell: Shell): Promise<void> {
  const server = await relay(t, () => '');
  for (const [name, answer, reported] of answers) {
    server.answer = () => answer;
    assert.match(await report(t, { tool, shell }, ['--server', server.url]), reported, name);
  }
}

for (const [tool, isThere] of everyTool().filter(([name]) => name !== 'openssl'))
  test(`an error response is reported with its details, with ${tool}`, isThere, (t) =>
    refusals(t, tool, 'sh'),
  );

inTurnOfShells('an error response is reported with its details', (t, shell) => refusals(t, 'curl', shell));
