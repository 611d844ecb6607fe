/** `vault certificate renew`: queued, joined and impossible renewals; and that secrets stay out of the log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeChain } from '../../../harness/ca/openssl-chain.ts';
import { scriptedAcme } from '../../../harness/ca/scripted-acme.ts';
import { commandLine, commandLineWithCa, commandWords } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { serve } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

test('a renewal is queued for the server, and a second request creates no second one', async (t) => {
  const { done, refused, json } = await commandLineWithCa(t);
  await done(...commandWords('certificate create --name web --domain web.test'));
  for (let times = 0; times < 2; times += 1) {
    const { stdout, stderr } = await done(...commandWords('certificate renew --name web'));
    const queued = 'Queued the renewal of web; "vault serve" runs it.\n';
    assert.deepEqual([stdout, stderr], ['', queued]);
  }
  assert.equal((await json<unknown[]>('renewals', 'list')).length, 1);
  await refused(
    commandWords('certificate renew --name wob --wait'),
    'vault: Unknown certificate "wob".\n  Did you mean "web"?\n',
  );
  await refused(commandWords('certificate renew --wait'), /^vault: --name is missing\n/, 2);
});

test('an imported certificate cannot be renewed', needs('openssl'), async (t) => {
  const { done, refused } = commandLine(t);
  const { fullchainPath, leaf } = makeChain(tempDir(t));
  const files = `--fullchain ${fullchainPath} --private-key ${leaf.keyPath}`;
  await done(...commandWords(`certificate import --name bought ${files}`));
  await refused(commandWords('certificate renew --name bought --wait'), /^vault: .*(issuer|imported)/);
});

test('the debug log of a server that issues a certificate contains no private key and no EAB key', async (t) => {
  const hmac = Buffer.from('a key of thirty-two bytes length');
  const line = commandLine(t);
  const ca = await scriptedAcme(t, { externalAccounts: { 'kid-1': hmac } });
  const add = `issuer add --name ca --directory ${ca.directoryUrl} --eab-kid kid-1 --eab-hmac-key-file`;
  await line.done(...commandWords(add), line.file(hmac.toString('base64url')));
  const server = await serve(t, line.data, { args: ['--log-level', 'debug'] });
  const { stdout, stderr } = await line.done(
    ...commandWords('certificate create --name web --domain web.test --issuer ca --wait'),
  );
  await server.end();
  const all = server.log() + stdout + stderr;
  assert.match(all, /certificate issued/);
  assert.doesNotMatch(all, /PRIVATE KEY|"d":|sealed/);
  for (const secret of [hmac.toString('base64url'), hmac.toString()]) assert.ok(!all.includes(secret));
  assert.ok(!line.holds('PRIVATE KEY-----'));
});
