/** `vault ca rotate` and `show`: what they say, and that a running server serves both roots at the next request. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commandLine, commandLineWithCa } from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

type Shown = { role: string; state: string; subject: string; key: string; needed_until: string | null };

test('a running server serves both roots at the next request after ca rotate, and renews', async (t) => {
  const { done, json, data } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const { url } = await serve(t, data);
  const roots = async () => (await (await fetch(`${url}/client/ca.crt`)).text()).match(/BEGIN/g)?.length;
  assert.equal(await roots(), 1);
  const { stdout, stderr } = await done('ca', 'rotate');
  assert.equal(stdout, '');
  assert.match(
    stderr,
    /^Replaced the root of local-ca\. Certificates are issued under the new root from now on\.\nQueued 1 renewal, over a day; "vault serve" runs it\.\nInstall the roots again on clients that trust the private CA, until 20\d\d-\d\d-\d\dT00:00:00Z\. Until then, \/client\/ca\.crt has both\.\n$/,
  );
  assert.equal(await roots(), 2);
  const shown = await json<Shown[]>('ca', 'show');
  assert.deepEqual(
    shown.map(({ role, state, key }) => `${role} ${state} ${key}`),
    ['root current vault', 'intermediate current vault', 'root former vault', 'intermediate former vault'],
  );
  await done('certificate', 'renew', '--name=web', '--wait');
  const { stdout: table } = await done('ca', 'show');
  assert.match(
    table,
    /^ROLE +STATE +SUBJECT +KEY +EXPIRES +NEEDED UNTIL\nroot +current +CN=Certificate Vault Root /,
  );
});

test('a second rotation, ACME issuers and unknown issuers are rejected with a next step', async (t) => {
  const { done, refused } = await commandLineWithCa(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test', '--issuer=local-ca');
  await done('ca', 'rotate');
  await refused(
    ['ca', 'rotate'],
    /^vault: the root of local-ca was replaced before, and clients may trust only the former one\n +The last certificate under it expires at 20\d\d-\d\d-\d\dT00:00:00Z\. Rotate after that\.\n$/,
  );
  for (const command of ['rotate', 'show']) {
    for (const issuer of ['ca', 'nothing']) {
      await refused(
        ['ca', command, '--issuer', issuer],
        `vault: no private CA named ${issuer}\n  Try: vault issuer list\n`,
      );
    }
  }
});
