/** Sessions while a master key follows another: they are signed by a key, and must not end with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { removeMasterKey } from '../../../src/domain/master-key/master-key-status.ts';
import { makeAdministrator, pageWith, signIn } from '../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';
import { testVault } from '../../harness/test-vault.ts';

test('sessions survive a master key rotation in every server process, whether or not it knows the new key', async (t) => {
  const { vault: rotating, dataDir, world, close } = await testVault(t);
  await makeAdministrator(rotating, 'alice');
  const serving = () => testServer(t, { dataDir, world });
  const [one, two] = [await serving(), await serving()];
  const before = await signIn(one, 'alice');
  const { from } = await rotateMasterKey(rotating, { actor: localCli, report: () => undefined });
  const statusAt = async (server: typeof one, { cookie }: typeof before) =>
    (await pageWith(server, cookie).send('GET', '/api/v1/session')).status;
  assert.equal(await statusAt(two, before), 200);
  for (const id of from) await removeMasterKey(rotating, localCli, rotating.keyring.path, id);
  await close();
  const after = await signIn(one, 'alice');
  assert.equal(await statusAt(two, after), 200, 'another that knew the old key alone');
  assert.equal(await statusAt(await serving(), after), 200, 'one that has never seen the old key');
  assert.equal(await statusAt(two, before), 200);
});
