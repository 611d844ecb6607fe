/**
 * Certificates that are disabled, deleted, moved or given other names in the middle of an order, at every step of it.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createIssuerInput, parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { addIssuer } from '../../../src/domain/issuers/issuer-changes.ts';
import { removeLeftoverChallenges } from '../../../src/domain/orders/challenge-removal.ts';
import { queueDueRenewals } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireVersion } from '../../../src/domain/versions/versions.ts';
import { challengeRows, type Engine, engine, workOn } from '../../harness/issuance/engine-vault.ts';
import { forever, rowOf } from '../../harness/issuance/renewal-fixtures.ts';
import { anotherOrder, nonceRequest, type OwnOrders, runWatched, stepsOf } from './engine-orders.ts';

type Changed = OwnOrders & {
  /** Whether nobody could have known that the request for the certificate should not be sent. */
  readonly isTooLate: boolean;
  readonly where: string;
};

/** Makes the change before each operation of an order, lets the vault do all that it then wants, and looks at it. */
async function walkChanges(
  t: TestContext,
  change: (vault: Vault, name: string) => Promise<unknown>,
  look: (opened: Engine, changed: Changed) => Promise<void>,
) {
  const opened = await engine(t, { certificate: null, zones: ['example.test'] });
  const { vault, zone, ca } = opened;
  const other = { name: 'other', directory_url: ca.directoryUrl, email: 'other@example.test' };
  await addIssuer(vault, localCli, parseInput(createIssuerInput, other), { acceptsTerms: true }, forever);
  for (const [index, step] of (await stepsOf(opened)).entries()) {
    const where = `before ${step.where}`;
    const own = await anotherOrder(opened, `www${index}`);
    let at: number | undefined;
    let changing: Promise<unknown> | undefined;
    const { operations } = await runWatched(opened, () => async (now) => {
      if (now.moment !== 'before') return;
      if (step.isAt(now, own.name)) {
        at = now.number - 1;
        changing = change(vault, own.name);
      }
      // Also what goes on beside it goes on after the change.
      await changing;
    });
    if (at === undefined) {
      assert.equal(step.what, nonceRequest, where);
      continue;
    }
    const finalize = operations.indexOf('POST /order/N/finalize');
    // After the CA has said that the order is ready there is the last look at the certificate, and the step that says
    // so.
    const isTooLate = finalize !== -1 && at > operations.indexOf('POST /order/N');
    await drain(vault);
    await removeLeftoverChallenges(vault);
    await look(opened, { ...own, where, isTooLate });
    assert.deepEqual(await challengeRows(vault), [], where);
    assert.deepEqual([...zone.records], [], where);
  }
}

/** Does what is queued, and what is due then. */
async function drain(vault: Vault): Promise<void> {
  for (;;) {
    await queueDueRenewals(vault, 100);
    const open = await vault.db.reader
      .selectFrom('renewals')
      .select('id')
      .where('status', 'in', ['queued', 'running'])
      .execute();
    if (open.length === 0) return;
    await workOn(vault);
  }
}

const update = (input: object) => (vault: Vault, name: string) =>
  changeCertificate(vault, localCli, name, parseInput(updateCertificateInput, input));

test('a certificate disabled during an order is not issued unless the order was already finalized', (t) =>
  walkChanges(
    t,
    update({ disabled: true }),
    async ({ vault }, { name, renewals, issued, isTooLate, where }) => {
      const row = await rowOf(vault, name);
      const all = await renewals();
      assert.equal(all.length, 1, where);
      assert.deepEqual([row.last_error, row.failed_attempts, row.next_renewal_at], [null, 0, null], where);
      assert.equal(issued().length, isTooLate ? 1 : 0, where);
      assert.equal(row.current_version, isTooLate ? 1 : null, where);
      assert.equal(all[0]?.status, isTooLate ? 'succeeded' : 'failed', where);
      if (!isTooLate) assert.match(all[0]?.error ?? '', /^the certificate (was|is) disabled$/, where);
    },
  ));

test('deleting a certificate during an order removes its renewals, challenges and records without errors', (t) =>
  walkChanges(
    t,
    (vault, name) => deleteCertificate(vault, localCli, name, { force: true }),
    async ({ vault, log }, { name, renewals, issued, isTooLate, where }) => {
      assert.deepEqual(await renewals(), [], where);
      assert(issued().length <= (isTooLate ? 1 : 0), where);
      await assert.rejects(rowOf(vault, name), { code: 'certificate_not_found' }, where);
      assert.deepEqual(
        log.lines.filter((line) => line.includes('"level":"error"')),
        [],
        where,
      );
    },
  ));

test('a certificate moved to another issuer during an order is issued by it unless already finalized', (t) =>
  walkChanges(
    t,
    update({ issuer: 'other' }),
    async ({ vault, ca }, { name, renewals, issued, isTooLate, where }) => {
      const row = await rowOf(vault, name);
      assert.deepEqual([row.last_error, row.failed_attempts, row.current_version], [null, 0, 1], where);
      assert.equal(issued().length, 1, where);
      const contact = ca.state.accounts.get(issued()[0]?.account ?? '')?.contact;
      assert.deepEqual(contact, [`mailto:${isTooLate ? name : 'other'}@example.test`], where);
      assert.equal((await renewals())[0]?.status, 'succeeded', where);
    },
  ));

test('a certificate whose names change during an order is issued for the new names', async (t) => {
  let count = 0;
  await walkChanges(
    t,
    (vault, name) => {
      count += 1;
      return update({ domains: [`${name}.example.test`, `${name}.new.test`] })(vault, name);
    },
    async ({ vault }, { name, renewals, issued, isTooLate, where }) => {
      const row = await rowOf(vault, name);
      assert.deepEqual([row.last_error, row.failed_attempts, row.changed_at], [null, 0, null], where);
      const version = await requireVersion(vault.db.reader, row, undefined);
      assert.deepEqual(JSON.parse(version.domains), [`${name}.example.test`, `${name}.new.test`], where);
      assert.equal(version.version, isTooLate ? 2 : 1, where);
      assert.equal(issued().length, isTooLate ? 2 : 1, where);
      assert.equal((await renewals())[0]?.status, 'succeeded', where);
    },
  );
  assert(count > 15);
});
