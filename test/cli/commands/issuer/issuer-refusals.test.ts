/**
 * `vault issuer add` when the CA is unreachable or has other requirements: each message says what to do, and nothing is
 * added.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { scriptedAcme } from '../../../harness/ca/scripted-acme.ts';
import { commandLine, commandWords } from '../../../harness/processes/command-line.ts';

const lookAtDirectory =
  '  Check --directory: use the full ACME directory URL from the documentation of the CA.\n';
const lookAround = '  Check the address, the firewall and, behind a proxy, HTTPS_PROXY and NO_PROXY.\n';

/** A web server that is no CA: its host. */
async function notACa(t: TestContext): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/html') response.setHeader('Content-Type', 'text/html').end('<html>');
    else if (request.url === '/json') response.setHeader('Content-Type', 'application/json').end('{}');
    else if (request.url === '/moved') response.writeHead(301, { Location: 'https://ca.test/' }).end();
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('an invalid or unreachable directory is rejected with a hint', async (t) => {
  const { refused, json } = commandLine(t, { environment: { HTTPS_PROXY: '', https_proxy: '' } });
  const host = await notACa(t);
  const cases: [url: string, message: string, hint: string][] = [
    [`http://${host}/gone`, `${host} responded with HTTP status 404 and no reason`, lookAtDirectory],
    [
      `http://${host}/html`,
      `unexpected response from ${host}: expected a directory, got text/html`,
      lookAtDirectory,
    ],
    [
      `http://${host}/moved`,
      `${host} responded with a redirect (301); redirects are not followed`,
      lookAtDirectory,
    ],
    [
      'http://192.0.2.1/directory',
      '192.0.2.1 must use https; no request was sent',
      '  Use an https:// URL in --directory.\n',
    ],
    ['https://127.0.0.1:1/directory', 'cannot connect to 127.0.0.1:1: connection refused', lookAround],
  ];
  for (const [url, message, hint] of cases) {
    await refused(['issuer', 'add', '--name', 'ca', '--directory', url], `vault: ${message}\n${hint}`);
  }
  await refused(
    ['issuer', 'add', '--name', 'ca', '--directory', `http://${host}/json`],
    /^vault: unexpected response from .*: expected a directory, got an invalid one: newNonce is missing\n {2}Check --directory/,
  );
  assert.equal((await json<unknown[]>('issuer', 'list')).length, 1);
});

test('an untrusted server certificate and an unsuitable --ca-file are rejected with a hint', async (t) => {
  const { refused, file } = commandLine(t);
  const [ca, other] = [await scriptedAcme(t, { tls: true }), await scriptedAcme(t, { tls: true })];
  const add = commandWords(`issuer add --name ca --directory ${ca.directoryUrl}`);
  const untrusted = `vault: the certificate of ${new URL(ca.origin).host} is not trusted: certificate issued by an unknown CA\n`;
  await refused(add, `${untrusted}  If the CA has its own root, pass it with --ca-file.\n`);
  await refused(
    [...add, '--ca-file', file(other.ca ?? '')],
    `${untrusted}  No certificate in --ca-file issued it. Use the root of the chain that this server sends.\n`,
  );
  const key = file('-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n');
  const damaged = file('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  await refused(
    [...add, '--ca-file', key],
    `vault: no certificate in ${key}\n  Use PEM blocks that begin with -----BEGIN CERTIFICATE-----.\n`,
  );
  await refused(
    [...add, '--ca-file', damaged],
    `vault: invalid certificate in ${damaged}\n` +
      '  The file is damaged. Download the PEM file of the root from the CA again.\n',
  );
  await refused(
    [...add, '--ca-file', join(damaged, 'absent')],
    /^vault: cannot read .*absent: not a directory\n {2}Check the file name /,
  );
  assert.deepEqual(
    [ca.requests, other.requests],
    [[], []],
    'nothing was sent to a server that is not trusted',
  );
});

test('a CA that requires external account binding needs both --eab-kid and --eab-hmac-key-file', async (t) => {
  const { refused, file } = commandLine(t);
  const ca = await scriptedAcme(t, { externalAccounts: { kid: Buffer.alloc(32, 7) } });
  const add = commandWords(`issuer add --name ca --directory ${ca.directoryUrl}`);
  const key = ['--eab-hmac-key-file', file(Buffer.alloc(32, 7).toString('base64url'))];
  const both =
    'vault: external account binding needs both a key id and an HMAC key\n  Pass both --eab-kid and --eab-hmac-key-file.\n';
  await refused(
    add,
    `vault: ${new URL(ca.origin).host} requires external account binding (EAB)\n` +
      '  Get a key id and an HMAC key from the CA, and pass them with --eab-kid and --eab-hmac-key-file.\n',
  );
  await refused([...add, '--eab-kid', 'kid'], both);
  await refused([...add, ...key], both);
  for (const content of ['not a key!', 'c2hvcnQ', '', Buffer.alloc(64)]) {
    const garbage = file(content);
    await refused(
      [...add, '--eab-kid', 'kid', '--eab-hmac-key-file', garbage],
      `vault: no HMAC key in ${garbage}\n` +
        '  Write the key to the file as the CA shows it: letters, digits, - and _ on one line.\n',
    );
  }
});

test('an unknown CA profile is rejected with the list of available profiles', async (t) => {
  const { refused } = commandLine(t);
  const some = await scriptedAcme(t, { profiles: { shortlived: 'six days', classic: '90 days' } });
  const none = await scriptedAcme(t);
  const add = (url: string) => commandWords(`issuer add --name ca --profile tiny --directory ${url}`);
  await refused(
    add(some.directoryUrl),
    'vault: ca has no profile "tiny"\n  Use one of: shortlived, classic.\n',
  );
  await refused(add(none.directoryUrl), 'vault: ca has no profile "tiny"\n  This CA has no profiles.\n');
});

test('invalid input is rejected before the CA is contacted', async (t) => {
  const { refused } = commandLine(t);
  await refused(
    ['issuer', 'add', '--name', 'a b', '--directory', 'ca.test', '--email', 'nobody', '--profile', 'a b'],
    'vault: a name has up to 64 letters, digits, dots, dashes and underscores\n' +
      'vault: "ca.test" is not a directory URL such as https://ca.example/acme/directory\n' +
      'vault: not an email address\n' +
      'vault: a profile is one word such as shortlived\n',
  );
  await refused(
    commandWords('issuer add --name ca --directory https://user:password@ca.test/directory'),
    /^vault: .* is not a directory URL /,
  );
});
