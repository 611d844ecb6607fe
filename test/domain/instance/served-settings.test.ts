/** The settings of running servers: of the one server of an embedded database, or of each node of a shared one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { readSetting } from '../../../src/db/tables/settings.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import {
  forgetServedSettings,
  recordServedSettings,
  servingServers,
} from '../../../src/domain/instance/served-settings.ts';
import { beginServing, endServing } from '../../../src/domain/instance/served-vault.ts';
import { recordNode } from '../../../src/domain/nodes/nodes.ts';
import { ownNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const { settings } = ownNode('one', { tls_certificate: 'web' });

test(
  'the settings of the server of an embedded database are kept until that server stops',
  ofFiles('servers have nodes'),
  async (t) => {
    const { vault } = await testVault(t);
    await recordServedSettings(vault, settings);
    assert.deepEqual(await servingServers(vault.db.reader), [{ host: undefined, settings }]);
    await forgetServedSettings(vault, 'another');
    assert.equal((await servingServers(vault.db.reader)).length, 1);
    await forgetServedSettings(vault, 'one');
    assert.deepEqual(await servingServers(vault.db.reader), []);
  },
);

test('each node of a shared database is listed by host, and a stopping node removes only its own record', async (t) => {
  const { nodes } = await sharedNodes(t, 0, 0);
  const [first, second] = nodes;
  for (const { vault, id } of nodes) {
    await beginServing(vault);
    await recordServedSettings(vault, ownNode(id).settings);
    await recordNode(vault, ownNode(id));
  }
  const hosts = async () => (await servingServers(first.vault.db.reader)).map(({ host }) => host);
  assert.deepEqual(await hosts(), ['node-1', 'node-2']);
  for (const key of ['served-since', 'served-settings'] as const) {
    assert.equal(await readSetting(first.vault.db.reader, key), undefined, 'no node speaks for all');
  }
  await endServing(first.vault, first.id);
  assert.deepEqual(await hosts(), ['node-2']);
  await endServing(second.vault, second.id);
  assert.deepEqual(await hosts(), []);
});

test('a certificate with which any live node serves HTTPS is not deleted, unless forced', async (t) => {
  const { nodes, advance } = await sharedNodes(t, minute, -minute);
  const [first, second] = nodes;
  await makeCertificate(first.vault, 'web');
  await makeCertificate(first.vault, 'old');
  await recordNode(first.vault, ownNode(first.id, { tls_certificate: 'old' }));
  await recordNode(second.vault, ownNode(second.id, { tls_certificate: 'web' }));
  const remove = (name: string, force = false) => deleteCertificate(first.vault, localCli, name, { force });
  await assert.rejects(remove('web'), /"web" is in use: the vault serves HTTPS with it/);
  await assert.rejects(remove('old'), /"old" is in use/);
  advance(minute);
  await recordNode(second.vault, ownNode(second.id, { tls_certificate: 'web' }));
  await remove('old');
  await assert.rejects(remove('web'), /"web" is in use/);
  await remove('web', true);
});
