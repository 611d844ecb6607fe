/** Real processes on one database: killed with SIGKILL at every request of an order, and several that race. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import { openFor, renewalKeyOwner } from '../../../src/domain/sealed-secrets.ts';
import { requireVersion, versionPrivateKey } from '../../../src/domain/versions/versions.ts';
import { challengeRows, engine, hastyWorld, issuedBy, workOn } from '../../harness/issuance/engine-vault.ts';
import { workerOn } from '../../harness/issuance/engine-worker.ts';
import { makeCertificate, rowOf, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';
import { anotherOrder } from './engine-orders.ts';
import { atRequests, workerProcess } from './engine-process.ts';

/** A vault whose clock is that of real processes. */
async function shared(t: TestContext) {
  const world = hastyWorld();
  const catchUp = (ms = 0) => world.advance(Date.now() + ms - world.now());
  catchUp();
  return { ...(await engine(t, { certificate: null, world })), catchUp };
}

/** The requests of an undisturbed order; a further nonce may be needed or not. */
async function requestsOf(opened: Awaited<ReturnType<typeof shared>>) {
  const { vault, ca, zone } = opened;
  const before = ca.kinds().length;
  await anotherOrder(opened, 'calm', ['calm.a.test', 'calm.b.test']);
  const ended = await workOn((await workerOn(vault, zone)).vault);
  assert.equal(ended.status, 'succeeded', String(ended.error));
  const kinds = ca.kinds().slice(before);
  const requests = kinds.map((kind, index) => ({
    kind,
    nth: kinds.slice(0, index + 1).filter((one) => one === kind).length,
  }));
  return requests.filter(({ kind, nth }) => kind !== 'newNonce' || nth === 1);
}

async function walkKills(t: TestContext, moment: 'lost' | 'unanswered') {
  const opened = await shared(t);
  const { vault, ca, dataDir, zone, catchUp } = opened;
  let next = workerProcess(t, dataDir);
  const steps = await requestsOf(opened);
  for (const [index, { kind, nth }] of steps.entries()) {
    catchUp();
    const name = `www${index}`;
    const own = await anotherOrder(opened, name, [`${name}.a.test`, `${name}.b.test`]);
    const { begin, kill, complaints } = await next;
    next = workerProcess(t, dataDir);
    const done = Promise.withResolvers<void>();
    const where = `${moment} request ${index + 1}, ${kind} (${nth})`;
    const end = atRequests(ca, async (at, now) => {
      if (at.kind !== kind || at.nth !== nth || now !== moment) return undefined;
      await kill('SIGKILL');
      done.resolve();
      return 'gone';
    });
    begin();
    await Promise.race([done.promise, complaints.then((said) => assert.equal(said, ''))]);
    end();
    const [left] = await own.renewals();
    assert.equal(left?.status, 'running', where);
    const key = left.sealed_private_key && openFor(vault, renewalKeyOwner(left.id), left.sealed_private_key);
    assert(key, where);

    catchUp(leaseDuration + 1000);
    const successor = await workerOn(vault, zone);
    const ended = await workOn(successor.vault);
    assert.deepEqual([ended.id, ended.status], [left.id, 'succeeded'], `${where}: ${ended.error}`);
    const [order, ...others] = own.issued();
    assert(order?.leaf && others.length === 0, where);
    if (left.order_url !== null) assert.equal(order.url, left.order_url, where);
    const isLost = moment === 'unanswered' && kind === 'newOrder';
    assert.equal(own.orders().length, isLost ? 2 : 1, where);
    assert.equal(own.accounts().length, 1, where);
    const version = await requireVersion(vault.db.reader, await rowOf(vault, name), undefined);
    const stored = publicKeyOf(versionPrivateKey(vault, version));
    assert.deepEqual(publicKeyOf(key), stored, where);
    const leaf = new X509Certificate(version.certificate_pem);
    assert(leaf.raw.equals(order.leaf), where);
    assert.deepEqual(leaf.publicKey.export({ type: 'spki', format: 'der' }), stored, where);
    assert.deepEqual(await challengeRows(vault), [], where);
  }
  const expected = [
    'directory',
    'newNonce',
    'newAccount',
    'newOrder',
    'authorization',
    'challenge',
    'finalize',
  ];
  const kinds = steps.map(({ kind }) => kind);
  for (const kind of expected) assert(kinds.includes(kind as never), `${kind} was never reached: ${kinds}`);
}

test('kill -9 before any request of an order reaches the CA: the next process continues the order', (t) =>
  walkKills(t, 'lost'));

test('kill -9 after the CA processed any request of an order: the next process issues no second certificate', (t) =>
  walkKills(t, 'unanswered'));

test('three processes on one database run every renewal exactly once', async (t) => {
  const opened = await shared(t);
  const { vault, ca, dataDir } = opened;
  const workers = await Promise.all([1, 2, 3].map(() => workerProcess(t, dataDir)));
  const count = 24;
  for (let n = 1; n <= count; n += 1) await makeCertificate(vault, `www${n}`, { issuer: 'ca' });
  for (const { begin } of workers) begin();
  const open = async () => (await statusesOf(vault)).filter((status) => status !== 'succeeded').length;
  // By the real clock: it is real processes that work.
  while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  for (const { kill } of workers) await kill('SIGTERM');
  for (const { complaints } of workers) assert.equal(await complaints, '');
  assert.equal(issuedBy(ca), count);
  assert.equal(ca.state.orders.size, count);
  assert.equal(ca.state.accounts.size, 1);
  const rows = await vault.db.reader.selectFrom('renewals').select(['claims', 'version']).execute();
  assert.deepEqual(
    rows,
    rows.map(() => ({ claims: 1, version: 1 })),
  );
});
