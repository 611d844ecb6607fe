/** What the doctor says of the server of a shared database: what it could lose, who could read along, and its time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { second } from '../../../src/base/duration.ts';
import type { ServerFacts } from '../../../src/db/engine.ts';
import { databaseFindings, findingsAbout } from '../../../src/domain/doctor/database-findings.ts';
import { testedEngine } from '../../harness/database/tested-engine.ts';
import { testVault } from '../../harness/test-vault.ts';

const at = Date.UTC(2026, 10, 28);

/** A server with a synchronous standby, nothing wrong with it. */
const healthy: ServerFacts = {
  place: 'db.internal:5432',
  version: '17.2',
  isEncrypted: true,
  isSocket: false,
  isPooled: false,
  synchronousCommit: 'on',
  synchronousStandbyNames: 'ANY 1 (second)',
  standbys: [{ name: 'second', state: 'streaming', sync: 'quorum' }],
  fsync: true,
  fullPageWrites: true,
  maxConnections: 100,
  isSchemaOpen: false,
  clock: { server: at, before: at, after: at },
};

const described = (facts: Partial<ServerFacts>) =>
  findingsAbout({ ...healthy, ...facts }).map(({ status, message }) => `${status} ${message}`);

for (const [title, facts, expected] of [
  ['TLS and a standby', {}, 'PostgreSQL 17.2, TLS, one standby (db.internal:5432)'],
  [
    'a unix socket, a pooler and no standby',
    { isSocket: true, isEncrypted: false, isPooled: true, standbys: [], place: '/run/postgresql' },
    'PostgreSQL 17.2, unix socket, pooler, no standby (/run/postgresql)',
  ],
  [
    'loopback without TLS',
    { isEncrypted: false, place: '127.0.0.1:5432' },
    'PostgreSQL 17.2, no TLS, one standby (127.0.0.1:5432)',
  ],
  [
    'no standby, and so no synchronous one',
    { standbys: [], synchronousStandbyNames: '' },
    'PostgreSQL 17.2, TLS, no standby (db.internal:5432)',
  ],
  [
    'a clock 30 seconds ahead',
    { clock: { server: at + 30 * second, before: at - second, after: at } },
    'PostgreSQL 17.2, TLS, one standby (db.internal:5432)',
  ],
] satisfies readonly [string, Partial<ServerFacts>, string][]) {
  test(`a server with ${title} is one finding`, () => {
    assert.deepEqual(described(facts), [`ok ${expected}`]);
  });
}

for (const [title, facts, expected] of [
  [
    'without fsync',
    { fsync: false },
    'failed the server does not survive a power failure: fsync is off (db.internal:5432)',
  ],
  [
    'without full_page_writes',
    { fullPageWrites: false },
    'failed the server does not survive a power failure: full_page_writes is off (db.internal:5432)',
  ],
  [
    'with asynchronous replication',
    { synchronousStandbyNames: '' },
    'warning replication is asynchronous: a failover can lose what the vault has confirmed',
  ],
  ['without TLS', { isEncrypted: false }, 'warning the connection to the server is not encrypted'],
  [
    'with an open schema',
    { isSchemaOpen: true },
    'warning every role of the database may create tables and functions in the schema of the vault',
  ],
  [
    'with a clock ahead',
    { clock: { server: at + 31 * second, before: at - second, after: at } },
    'warning the clock of this machine is 31 s behind that of the server',
  ],
  [
    'with a clock behind',
    { clock: { server: at - 31 * second, before: at, after: at + second } },
    'warning the clock of this machine is 31 s ahead of that of the server',
  ],
] satisfies readonly [string, Partial<ServerFacts>, string][]) {
  test(`a server ${title} is reported with what to do`, () => {
    assert.deepEqual(described(facts).slice(1), [expected]);
    const [, { hint = '' } = {}] = findingsAbout({ ...healthy, ...facts });
    assert.match(hint, /\.$|public$/);
  });
}

test('only a server of databases has database findings', async (t) => {
  const { vault } = await testVault(t);
  const [first, ...more] = await databaseFindings(vault);
  if (testedEngine === 'sqlite') return assert.equal(first, undefined);
  assert.match(first?.message ?? '', /^PostgreSQL \d+\.\d+, no TLS, no standby \(127\.0\.0\.1:\d+\)$/);
  // Servers of tests may lose what they have at a power cut.
  assert.deepEqual(
    more.map(({ status }) => status),
    ['failed'],
  );
});
