/** A certificate is disabled, deleted, changed or moved to another CA while it is being ordered. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { issuedBy } from '../harness/acme/certificates.ts';
import type { AcmeFront } from '../harness/acme/front.ts';
import { type AcmeVault, frontedVault, needsAcme } from '../harness/acme/vault.ts';
import { pebble } from '../harness/ca/pebble.ts';
import { eventually } from '../harness/eventually.ts';

type Renewal = { readonly status: string; readonly error: string | null; readonly issuer_id: number | null };

function renewals({ query }: AcmeVault): Renewal[] {
  return query<Renewal>('select status, error, issuer_id from renewals order by id');
}

/** A vault whose certificate `web` has been ordered; the answer to its challenge waits on its way to the CA. */
async function midOrder(t: TestContext): Promise<{ vault: AcmeVault; front: AcmeFront; goOn: () => void }> {
  const { vault, front } = await frontedVault(t);
  await vault.serve();
  const held = front.hold('request', /^\/chalZ\//);
  const args = ['--name', 'web', '--domain', 'www.example.test', '--issuer', 'pebble'];
  await vault.done('certificate', 'create', ...args);
  await held.reached;
  return { vault, front, goOn: held.release };
}

/** All renewals of the vault, once none is open. */
function ended(vault: AcmeVault): Promise<Renewal[]> {
  return eventually('the renewals end', () => {
    const rows = renewals(vault);
    const isOpen = rows.some(({ status }) => status === 'queued' || status === 'running');
    return isOpen ? undefined : rows;
  });
}

suite('in the middle of an order', needsAcme(), () => {
  test('a certificate that is disabled is not issued until it is enabled again', async (t) => {
    const { vault, goOn } = await midOrder(t);
    await vault.done('certificate', 'update', '--name', 'web', '--disable');
    goOn();
    assert.deepEqual(
      (await ended(vault)).map(({ status, error }) => [status, error]),
      [['failed', 'the certificate was disabled']],
    );
    assert.equal(issuedBy(vault.ca), 0);
    assert.match(await vault.refused('certificate', 'renew', '--name', 'web'), /disabled/);
    const { failed_attempts: failures } = vault.query<{ failed_attempts: number }>(
      'select failed_attempts from certificates',
    )[0] ?? { failed_attempts: -1 };
    assert.equal(failures, 0, 'that was no failure');
    await vault.done('certificate', 'update', '--name', 'web', '--enable');
    assert.match(await vault.done('certificate', 'renew', '--name', 'web', '--wait'), /^web: version 1,/);
  });

  test('a deleted certificate leaves no renewal or challenge, and its name can be reused', async (t) => {
    const { vault, goOn } = await midOrder(t);
    await vault.done('certificate', 'delete', '--name', 'web');
    assert.deepEqual(renewals(vault), []);
    goOn();
    assert.match(await vault.issue('web', '--domain', 'www.example.test'), /^web: version 1,/);
    assert.equal(issuedBy(vault.ca), 1);
    await eventually('no challenge is left', () => {
      const rows = vault.query('select id from acme_challenges');
      return rows.length === 0 ? true : undefined;
    });
  });

  test('a certificate that is moved to another CA is issued only by that CA', async (t) => {
    const { vault, goOn } = await midOrder(t);
    const { server: dnsServer } = vault.dns;
    const other = await pebble(t, { dnsServer, httpPort: vault.httpPort, tlsPort: vault.tlsPort });
    await vault.addIssuer('other', other);
    await vault.done('certificate', 'update', '--name', 'web', '--issuer', 'other');
    goOn();
    const rows = await eventually('it comes from the other CA', () => {
      const found = renewals(vault);
      return found.at(-1)?.status === 'succeeded' ? found : undefined;
    });
    assert.deepEqual(
      rows.map(({ status, error }) => [status, error]),
      [
        ['failed', 'the certificate was moved to another issuer'],
        ['succeeded', null],
      ],
    );
    assert.deepEqual([issuedBy(vault.ca), issuedBy(other)], [0, 1]);
  });

  test('a certificate whose domains change is issued once, with the new domains', async (t) => {
    const { vault, goOn } = await midOrder(t);
    await vault.done('certificate', 'update', '--name', 'web', '--domain', 'other.example.test');
    goOn();
    const rows = await eventually('it has the new names', () => {
      const found = renewals(vault);
      return found.at(-1)?.status === 'succeeded' ? found : undefined;
    });
    assert.equal(rows[0]?.error, 'the names or the key type were changed');
    const versions = vault.query<{ domains: string }>('select domains from certificate_versions');
    assert.deepEqual(versions, [{ domains: '["other.example.test"]' }]);
    assert.equal(issuedBy(vault.ca), 1);
  });
});
