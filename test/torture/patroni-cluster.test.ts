/** Tests the PostgreSQL cluster that chambers torture the vault on, in a switchover and in a crash of the primary. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { missingRows, moreRows, query, startWriter } from './acknowledged-rows.ts';
import { startCluster } from './patroni-cluster.ts';
import { needsPatroni } from './patroni-member.ts';

const write = 'insert into kept values (-1)';

test(
  'no acknowledged row is lost in a switchover or a crash, and no former primary accepts a write',
  needsPatroni(),
  async (t) => {
    const started = Date.now();
    const note = (what: string) => t.diagnostic(`${((Date.now() - started) / 1000).toFixed(1)} s: ${what}`);
    const cluster = await startCluster(t);
    note('started');
    const writer = await startWriter(t, cluster);
    await moreRows(writer);

    const first = await cluster.primary();
    const second = await cluster.switchover();
    assert.notEqual(second, first);
    await moreRows(writer);
    // It is starting again, as a standby.
    await assert.rejects(query(cluster.directUrl(first), write), { code: /25006|57P03|ECONNREFUSED/ });
    await cluster.heal();
    note('switched over');

    assert.equal(await cluster.crashPrimary(), second);
    await assert.rejects(query(cluster.directUrl(second), 'select 1'), { code: 'ECONNREFUSED' });
    assert.equal(await cluster.primaryOtherThan(second), first);
    await moreRows(writer);
    await cluster.heal();
    await assert.rejects(query(cluster.directUrl(second), write), { code: '25006' });
    note('recovered from a crash');

    await writer.stop();
    assert.deepEqual(await missingRows(cluster, first, writer), []);
    await cluster.caughtUp();
    assert.deepEqual(await missingRows(cluster, second, writer), []);
    note(`${writer.acknowledged.length} rows acknowledged`);
  },
);
