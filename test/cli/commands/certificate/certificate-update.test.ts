/** `vault certificate update`: what changes, what is renewed for it, and what is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLineWithCa, commandWords } from '../../../harness/processes/command-line.ts';

type View = { domains: string[]; key_type: string; issuer: string; status: string; auto_renew: boolean };

const create = commandWords('certificate create --name web --domain web.test');
const update = (changes: string) => commandWords(`certificate update --name web ${changes}`);
const soon = 'Updated certificate web. Queued a renewal; "vault serve" runs it.\n';
const noFallback = '  Choose another issuer with --fallback-issuer, or none.\n';

test('update rejects empty, contradictory and unsupported changes, and changes nothing', async (t) => {
  const { done, refused, json } = await commandLineWithCa(t);
  await done(...create);
  const before = await json('certificate', 'list');
  await refused(update(''), 'vault: nothing to change\n  Try: vault certificate update --help\n', 2);
  for (const [on, off] of [
    ['--disable', '--enable'],
    ['--reuse-key', '--no-reuse-key'],
    ['--rotate-key', '--no-rotate-key'],
    ['--auto-renew', '--no-auto-renew'],
  ]) {
    await refused(
      update(`${off} ${on}`),
      `vault: ${on} and ${off} exclude each other\n  Use one of them.\n`,
      2,
    );
  }
  await refused(
    update('--challenge dns-01'),
    'vault: issuer local-ca is not an ACME CA and does not support challenges\n',
  );
  await refused(update('--profile tiny'), /^vault: issuer local-ca has no profile "tiny"\n/);
  await refused(
    update('--issuer ca --key-type ed25519'),
    'vault: ACME CAs do not issue certificates for Ed25519 keys; use ec256, ec384 or RSA\n',
  );
  await refused(
    update('--issuer ca --fallback-issuer ca'),
    `vault: issuer ca cannot be its own fallback\n${noFallback}`,
  );
  await refused(update('--domain a..b'), /^vault: "a\.\.b" is not a domain: /);
  await refused(
    commandWords('certificate update --name wab --disable'),
    'vault: Unknown certificate "wab".\n  Did you mean "web"?\n',
  );
  await refused(update('--issuer cb'), 'vault: unknown issuer "cb"\n  Did you mean "ca"?\n');
  assert.deepEqual(await json('certificate', 'list'), before);
});

test('new domains and a new key type queue a renewal immediately; equal values do not', async (t) => {
  const { done, json } = await commandLineWithCa(t);
  await done(...create);
  assert.equal((await done(...update('--domain WEB.test.'))).stderr, 'Updated certificate web.\n');
  assert.equal((await done(...update('--key-type ec256'))).stderr, 'Updated certificate web.\n');
  assert.deepEqual(await json('renewals', 'list'), []);
  assert.equal((await done(...update('--domain web.test --domain www.web.test'))).stderr, soon);
  assert.equal((await done(...update('--key-type rsa2048'))).stderr, soon);
  const renewals = await json<{ status: string }[]>('renewals', 'list');
  assert.deepEqual(
    renewals.map(({ status }) => status),
    ['queued'],
    'one renewal makes both',
  );
  const { stdout } = await done(...commandWords('certificate renew --name web --wait'));
  assert.match(stdout, /^web: version 2, valid until \S+Z\n$/);
  const [view] = await json<(View & { current_version: View })[]>('certificate', 'list');
  assert.deepEqual(
    [view?.current_version.domains, view?.current_version.key_type],
    [['web.test', 'www.web.test'], 'rsa2048'],
  );
});

test('a certificate moves to another issuer with its next version, and the output says how to renew now', async (t) => {
  const { done, refused, json } = await commandLineWithCa(t);
  await done(...create);
  assert.equal(
    (await done(...update('--issuer ca --challenge http-01'))).stderr,
    'Updated certificate web.\n' +
      '  The next renewal uses ca. To renew now: vault certificate renew --name web\n',
  );
  await done(...update('--challenge none --fallback-issuer local-ca'));
  await refused(
    update('--issuer local-ca'),
    `vault: issuer local-ca cannot be its own fallback\n${noFallback}`,
  );
  await done(...update('--fallback-issuer none'));
  await done(...commandWords('certificate renew --name web --wait'));
  const [view] = await json<{ current_version: { source: string; version: number } }[]>(
    'certificate',
    'list',
  );
  assert.deepEqual([view?.current_version.source, view?.current_version.version], ['acme', 2]);
  const { stdout } = await done(...update('--issuer local-ca --wait'));
  assert.match(stdout, /^web: version 3, valid until \S+Z\n$/, 'with --wait at once');
});

test('a disabled certificate is shown as disabled and not renewed until it is enabled', async (t) => {
  const { done, refused, json } = await commandLineWithCa(t);
  await done(...create);
  await done(...update('--disable --no-auto-renew'));
  const [view] = await json<View[]>('certificate', 'list');
  assert.deepEqual([view?.status, view?.auto_renew], ['disabled', false]);
  await refused(
    commandWords('certificate renew --name web'),
    'vault: The certificate is disabled.\n  Fix: vault certificate update --name web --enable\n',
  );
  await done(...update('--enable --auto-renew'));
  assert.equal(
    (await done(...commandWords('certificate renew --name web'))).stderr,
    'Queued the renewal of web; "vault serve" runs it.\n',
  );
});
