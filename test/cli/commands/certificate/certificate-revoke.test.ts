/** `vault certificate revoke`: the CA is told, the version is marked, and what is served is replaced. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { problem } from '../../../harness/ca/scripted-acme.ts';
import { commandLineWithCa, commandWords } from '../../../harness/processes/command-line.ts';

const create = commandWords('certificate create --name web --domain web.test --issuer ca --wait');
const revoke = (options: string) => commandWords(`certificate revoke --name web ${options}`);

test('a version is revoked with its reason and marked; revoking the current one queues a renewal', async (t) => {
  const { ca, done, json } = await commandLineWithCa(t);
  await done(...create);
  await done(...commandWords('certificate renew --name web --wait'));
  assert.equal(
    (await done(...revoke('--version 1 --reason superseded'))).stderr,
    'Revoked version 1 of web.\n',
  );
  assert.equal(
    (await done(...revoke('--reason keyCompromise'))).stderr,
    'Revoked version 2 of web. Queued a renewal; "vault serve" runs it.\n',
  );
  assert.deepEqual([...ca.state.revoked.values()], [4, 1]);
  const { stdout } = await done('certificate', 'show', '--name', 'web');
  assert.match(stdout, /\n2 \(current\) .* acme, revoked .*\n1 .* acme, revoked .*\n$/);
  const [renewal] = await json<{ status: string }[]>('renewals', 'list', '--limit', '1');
  assert.equal(renewal?.status, 'queued');
});

test('a private CA version is revoked without contacting the ACME CA, by default with reason unspecified', async (t) => {
  const { ca, done, json, refused } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test'));
  assert.equal(
    (await done(...revoke(''))).stderr,
    'Revoked version 1 of web. Queued a renewal; "vault serve" runs it.\n',
  );
  await refused(revoke(''), /^vault: version 1 of web was already revoked at /);
  const [event] = await json<{ detail: object }[]>(
    'audit',
    'list',
    '--action',
    'certificate.revoke',
    '--limit',
    '1',
  );
  assert.deepEqual(event?.detail, { version: 1, reason: 'unspecified' });
  assert.deepEqual(ca.kinds(), ['directory']);
});

test('unknown certificates, versions and reasons are rejected before the CA is contacted', async (t) => {
  const { ca, done, refused } = await commandLineWithCa(t);
  await refused(
    revoke('--reason keyCompromise'),
    /^vault: Unknown certificate "web"\.\n {2}Try: vault certificate list/,
  );
  await done(...commandWords('certificate create --name web --domain web.test'));
  await done(...commandWords('certificate create --name new --domain new.test --issuer ca'));
  await refused(
    commandWords('certificate revoke --name new --reason superseded'),
    'vault: This certificate has not been issued yet.\n',
  );
  await refused(revoke('--version 7 --reason superseded'), 'vault: Certificate "web" has no version 7.\n');
  await refused(
    revoke('--reason because'),
    'vault: --reason: unknown reason "because"\n' +
      '  Use one of unspecified, keyCompromise, affiliationChanged, superseded, cessationOfOperation.\n',
    2,
  );
  for (const version of ['0', 'x', '1.5']) {
    await refused(
      revoke(`--reason superseded --version ${version}`),
      /^vault: --version: .* is not a version number\n/,
      2,
    );
  }
  assert.deepEqual(ca.kinds(), ['directory']);
});

test("a rejection is reported in the CA's own words, without control characters, and nothing is marked", async (t) => {
  const { ca, done, refused } = await commandLineWithCa(t);
  await done(...create);
  ca.override('revokeCert', problem('unauthorized', 'you may \u001b[31mnot\u0007 revoke this'));
  await refused(revoke('--reason superseded'), /^vault: you may +\[31mnot +revoke this\n$/);
  assert.doesNotMatch((await done('certificate', 'show', '--name', 'web')).stdout, /revoked/);
});
