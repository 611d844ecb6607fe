/** Metrics of several processes: sums that never decrease or count twice, whichever worker exits. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Member } from '../../../src/cli/workers/worker-member.ts';
import type { FromWorker, ToWorker } from '../../../src/cli/workers/worker-messages.ts';
import { workerPeers } from '../../../src/cli/workers/worker-peers.ts';
import { WorkerSeries } from '../../../src/cli/workers/worker-series.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** A worker that says nothing by itself. */
function silent(number: number) {
  const asked: ToWorker[] = [];
  const member = { number, send: (message: ToWorker) => void asked.push(message) } as unknown as Member;
  return { member, asked };
}

suite('the series of all workers', () => {
  test('keep the counts of one that is gone, once, even if its report arrives later', async () => {
    const series = new WorkerSeries(new TestWorld());
    const [one, other] = [silent(1), silent(2)];
    series.note(one.member, { downloads: 3 });
    series.note(other.member, { downloads: 4 });
    series.gone(one.member);
    series.note(one.member, { downloads: 3 });
    const all = series.gather([other.member]);
    const [question] = other.asked;
    assert(question?.do === 'measure');
    const process = { memory: 7 };
    series.answer(one.member, question.id, { counts: { downloads: 3 }, process });
    series.answer(other.member, question.id, { counts: { downloads: 5 }, process });
    assert.deepEqual(await all, {
      ...{ downloads: 8, memory: 7, vault_workers: 1, vault_worker_restarts_total: 1 },
    });
  });

  test('are reported by each worker every second without a process query, and completely on request', async () => {
    const told: FromWorker[] = [];
    const send = (message: FromWorker) => void told.push(message);
    const number = { number: 1, ticketSeed: Buffer.alloc(32) };
    const companions = workerPeers({ send }, number, new TestWorld());
    let looks = 0;
    const process = async () => {
      looks += 1;
      if (looks > 1) throw new Error('no more descriptors');
      return { memory: 7 };
    };
    companions.measureBy({ counts: () => ({ downloads: 3 }), process });
    companions.reportCounts();
    assert.deepEqual([looks, told.splice(0)], [0, [{ say: 'counted', counts: { downloads: 3 } }]]);
    for (const measured of [
      { counts: { downloads: 3 }, process: { memory: 7 } },
      { counts: { downloads: 3 }, process: {} },
    ]) {
      companions.hear({ do: 'measure', id: 5 });
      await new Promise(setImmediate);
      assert.deepEqual(told.splice(0), [{ say: 'measured', id: 5, measured }]);
    }
  });
});
