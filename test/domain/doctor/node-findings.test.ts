/** What the doctor says of nodes: silent ones, versions, clocks, settings, and whether one runs the background jobs. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hour, minute, second } from '../../../src/base/duration.ts';
import { nodeFindings } from '../../../src/domain/doctor/node-findings.ts';
import { leadershipDuration, takeLeadership } from '../../../src/domain/nodes/leadership.ts';
import { recordNode } from '../../../src/domain/nodes/nodes.ts';
import { ownNode, sharedNodes } from '../../harness/database/shared-nodes.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { testVault } from '../../harness/test-vault.ts';

type Others = NonNullable<Parameters<typeof ownNode>[1]>;

/** The findings with nodes like these, of which the first leads, as `status message`. */
async function findingsWith(t: TestContext, ...others: readonly Others[]): Promise<string[]> {
  const { nodes } = await sharedNodes(t, 0);
  const [{ vault }] = nodes;
  for (const [index, other] of others.entries()) {
    await recordNode(vault, ownNode(`node-${index + 1}`, other));
  }
  await takeLeadership(vault, 'node-1');
  return (await nodeFindings(vault)).map(({ status, message }) => `${status} ${message}`);
}

test('an embedded database has no node findings', ofFiles('servers have nodes'), async (t) => {
  const { vault } = await testVault(t);
  assert.deepEqual(await nodeFindings(vault), []);
});

test('healthy nodes are one finding that marks the node running the background jobs', async (t) => {
  assert.deepEqual(await findingsWith(t, { host: 'a' }, { host: 'b' }), [
    'ok 2 nodes with version 0.1.0: a (background jobs), b',
  ]);
});

test('two adjacent releases work side by side, others do not', async (t) => {
  const beside = [
    ['0.1.0', '0.1.7'],
    ['0.1.0', '0.2.0'],
    ['1.9.3', '1.10.0'],
    ['0.9.0', '1.0.2'],
    ['odd', 'odd'],
  ];
  for (const [a = '', b = ''] of beside) {
    for (const versions of [
      [a, b],
      [b, a],
    ] as const) {
      const found = await findingsWith(t, ...versions.map((version) => ({ version })));
      assert.match(found.join('\n'), /^ok 2 nodes with versions? [^:]*: node-1/, versions.join(' and '));
    }
  }
  const apart = [
    ['0.1.0', '0.3.0'],
    ['0.9.0', '1.1.0'],
    ['0.1.0', '2.0.0'],
    ['0.1.0', 'odd'],
  ];
  for (const [a = '', b = ''] of apart) {
    for (const versions of [
      [a, b],
      [b, a],
    ] as const) {
      const [first, last] = versions;
      assert.deepEqual(await findingsWith(t, { version: first }, { version: last }), [
        `warning nodes have releases that do not work side by side: node-1 has ${first}, node-2 has ${last}`,
      ]);
    }
  }
  const three = await findingsWith(t, { version: '0.1.0' }, { version: '0.2.0' }, { version: '0.3.0' });
  assert.match(three.join('\n'), /^warning nodes have releases/);
});

test('a node not seen for a minute is reported with the time it was last seen', async (t) => {
  const { nodes, advance } = await sharedNodes(t, hour, -hour);
  const [first, second] = nodes;
  const record = ({ vault, id }: (typeof nodes)[0 | 1]) => recordNode(vault, ownNode(id));
  await record(first);
  await record(second);
  await takeLeadership(second.vault, second.id);
  advance(minute);
  await record(second);
  await takeLeadership(second.vault, second.id);
  const findings = (await nodeFindings(second.vault)).filter(({ message }) => !message.includes('clock'));
  assert.deepEqual(
    findings.map(({ about, status, message }) => ({ about, status, message })),
    [
      {
        about: 'node-1',
        status: 'warning',
        message: 'node node-1 was last seen at 2026-11-21T12:00:00Z',
      },
    ],
  );
});

test('a clock more than 30 seconds from that of the database is a warning, whichever direction', async (t) => {
  const { nodes } = await sharedNodes(t, 30 * second, 31 * second, -30 * second, -2 * minute);
  for (const { vault, id } of nodes) await recordNode(vault, ownNode(id));
  await takeLeadership(nodes[0].vault, nodes[0].id);
  assert.deepEqual(
    (await nodeFindings(nodes[0].vault)).map(({ status, about, message }) => [status, about, message]),
    [
      ['warning', 'node-2', 'the clock of node node-2 is 31 s ahead of that of the database'],
      ['warning', 'node-4', 'the clock of node node-4 is 120 s behind that of the database'],
    ],
  );
});

test('settings that differ between nodes are reported with their hosts', async (t) => {
  const found = await findingsWith(
    t,
    { public_url: 'https://vault.test', tls_certificate: 'web', listen: { host: '10.0.0.1', port: 443 } },
    { public_url: 'https://vault.test', backup_dir: '/backups', listen: { host: '10.0.0.2', port: 443 } },
  );
  assert.deepEqual(found, [
    'warning nodes have different settings of tls_certificate: web (node-1), none (node-2)',
    'warning nodes have different settings of backup_dir: none (node-1), /backups (node-2)',
  ]);
});

test('without a leader, and without any node, the doctor warns', async (t) => {
  const { nodes, advance } = await sharedNodes(t, 0);
  const [{ vault, id }] = nodes;
  const messages = async () =>
    (await nodeFindings(vault)).map(({ status, message }) => `${status} ${message}`);
  assert.deepEqual(await messages(), ['warning no node serves this database']);
  await recordNode(vault, ownNode(id));
  await takeLeadership(vault, id);
  advance(leadershipDuration);
  assert.deepEqual(await messages(), [
    'warning no node runs the background jobs; renewals, notifications and backups wait',
  ]);
});
