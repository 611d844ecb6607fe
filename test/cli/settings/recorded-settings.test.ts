/** Which settings commands follow: those of the server on this host, or of all servers where that matters. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hostName } from '../../../src/cli/settings/host-name.ts';
import { allSettingsInUse, settingsInUse } from '../../../src/cli/settings/recorded-settings.ts';
import { recordNode } from '../../../src/domain/nodes/nodes.ts';
import { ownNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { settingsFor } from '../../harness/test-vault.ts';

const own = { ...settingsFor('/data'), publicUrl: 'https://own.test' };

/** The URLs of nodes on these hosts, as a command on this machine follows them. */
async function urlsWith(t: TestContext, ...hosts: string[]) {
  const { nodes } = await sharedNodes(t, 0);
  const [{ vault }] = nodes;
  for (const [index, host] of hosts.entries()) {
    await recordNode(vault, ownNode(`n${index}`, { host, public_url: `https://n${index}.test` }));
  }
  return {
    followed: (await settingsInUse(vault, own)).publicUrl,
    all: (await allSettingsInUse(vault, own)).map(({ publicUrl }) => publicUrl),
  };
}

test('without a running server a command follows its own settings', async (t) => {
  assert.deepEqual(await urlsWith(t), { followed: 'https://own.test', all: ['https://own.test'] });
});

test('with several nodes, a command follows the settings of the node on its host', async (t) => {
  const all = ['https://n0.test', 'https://n1.test'];
  assert.deepEqual(await urlsWith(t, '0-other', hostName()), { followed: 'https://n1.test', all });
  assert.deepEqual(await urlsWith(t, hostName(), 'z-other'), {
    followed: 'https://n0.test',
    all: hostName() < 'z-other' ? all : all.toReversed(),
  });
});

test('without a node on its host, a command follows the settings of another node', async (t) => {
  const { followed } = await urlsWith(t, 'a-other', 'b-other');
  assert.equal(followed, 'https://n0.test');
});
