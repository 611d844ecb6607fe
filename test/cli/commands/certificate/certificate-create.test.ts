/** `vault certificate create` with an ACME CA: what it orders, what it says, and what no CA could make. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLineWithCa, commandWords } from '../../../harness/processes/command-line.ts';

test('an ACME certificate is queued immediately, and the output says which process orders it', async (t) => {
  const { ca, run, json } = await commandLineWithCa(t);
  assert.deepEqual(
    await run(...commandWords('certificate create --name web --domain web.test --issuer ca')),
    {
      code: 0,
      stdout: '',
      stderr:
        'Created web. "vault serve" orders it from ca.\n' +
        '  To watch the order: vault certificate renew --name web --wait\n',
    },
  );
  assert.deepEqual(ca.kinds(), ['directory']);
  const [view] = await json<{ status: string; current_version: unknown }[]>('certificate', 'list');
  assert.deepEqual([view?.status, view?.current_version], ['pending', null]);
});

test('a certificate that waits for its first version is shown with its options', async (t) => {
  const { done } = await commandLineWithCa(t);
  const options = '--issuer ca --fallback-issuer local-ca --challenge http-01 --profile shortlived';
  await done(...commandWords(`certificate create --name web --domain web.test ${options}`));
  const { stdout } = await done('certificate', 'show', '--name', 'web');
  assert.match(
    stdout,
    new RegExp(
      '^Name       web\nStatus     pending\nDomains    web\\.test\nKey type   ec256\nIssuer     ca\n' +
        'Fallback   local-ca\nChallenge  http-01\nProfile    shortlived\nCreated    \\S+Z\nRenewal    \\S+Z\n' +
        'Renewing   queued\n\nNo versions yet\\.\n$',
    ),
  );
});

test('a client certificate is shown with its usage, URI, email address and subject', async (t) => {
  const { done } = await commandLineWithCa(t);
  const uri = 'spiffe://web.test/billing';
  const names = [
    '--uri',
    uri,
    '--email',
    'alice@web.test',
    '--subject',
    'CN=alice',
    '--subject',
    'O=Example',
  ];
  await done('certificate', 'create', '--name', 'billing', '--usage', 'client', ...names);
  const { stdout } = await done('certificate', 'show', '--name', 'billing');
  assert.match(
    stdout,
    /\nURIs +spiffe:\/\/web\.test\/billing\nEmail +alice@web\.test\nSubject +CN=alice, O=Example\nUsage +client\n/,
  );
  const shown = JSON.parse((await done('certificate', 'show', '--name', 'billing', '--json')).stdout);
  const { usage, uris, emails, subject } = shown;
  assert.deepEqual([usage, uris, emails], ['client', [uri], ['alice@web.test']]);
  assert.deepEqual(subject, ['CN=alice', 'O=Example']);
});

test('options that the issuer does not support are rejected with the reason, and nothing is ordered', async (t) => {
  const { ca, refused, json } = await commandLineWithCa(t);
  const cases: [options: string, message: string][] = [
    [
      '--domain a.test --issuer ca --key-type ed25519',
      'ACME CAs do not issue certificates for Ed25519 keys; use ec256, ec384 or RSA',
    ],
    [
      '--domain a.test --issuer ca --lifetime 5d',
      'issuer ca chooses the lifetime itself; choose a profile instead',
    ],
    [
      '--domain a.test --domain *.a.test --issuer ca --challenge http-01',
      '*.a.test can only be validated with dns-01',
    ],
    ['--domain *.a.test --issuer ca --challenge tls-alpn-01', '*.a.test can only be validated with dns-01'],
    [
      '--domain 192.0.2.1 --issuer ca --challenge dns-01',
      '192.0.2.1 can only be validated with http-01 or tls-alpn-01',
    ],
    [
      '--domain a.test --challenge http-01',
      'issuer local-ca is not an ACME CA and does not support challenges',
    ],
    [
      '--domain a.test --issuer ca --challenge http-02',
      '"http-02" is not a challenge: use one of http-01, tls-alpn-01, dns-01, dns-persist-01',
    ],
  ];
  for (const [options, message] of cases) {
    await refused(commandWords(`certificate create --name a ${options}`), `vault: ${message}\n`);
  }
  await refused(
    commandWords('certificate create --name a --domain a.test --issuer ca --fallback-issuer ca'),
    'vault: issuer ca cannot be its own fallback\n  Choose another issuer with --fallback-issuer, or none.\n',
  );
  for (const option of ['--issuer', '--fallback-issuer']) {
    await refused(
      commandWords(`certificate create --name a --domain a.test ${option} cb`),
      'vault: unknown issuer "cb"\n  Did you mean "ca"?\n',
    );
  }
  assert.deepEqual([await json('certificate', 'list'), ca.kinds()], [[], ['directory']]);
});

test('--wait is accepted when the private CA issues immediately', async (t) => {
  const { done } = await commandLineWithCa(t);
  const { stdout, stderr } = await done(
    ...commandWords('certificate create --name in --domain in.test --wait'),
  );
  assert.match(stdout, /^in: version 1, valid until \S+Z\n$/);
  assert.equal(stderr, '');
});
