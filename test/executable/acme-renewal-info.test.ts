/** A CA that wants a certificate replaced says so (RFC 9773), and it is, as a replacement. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acmeVault, letPass, needsAcme } from '../harness/acme/vault.ts';
import { eventually } from '../harness/eventually.ts';

const hour = 3_600_000;

type Planned = {
  readonly current_version: number;
  readonly ari_window_start: number | null;
  readonly next_renewal_at: number;
};

test(
  'a renewal window that the CA moves into the past causes an immediate renewal with `replaces`',
  needsAcme('ari'),
  async (t) => {
    const vault = await acmeVault(t);
    const planned = () =>
      vault.query<Planned>('select current_version, ari_window_start, next_renewal_at from certificates')[0];
    const client = await vault.client();
    const first = await vault.serve();
    await vault.issue('web', '--domain', 'www.example.test');
    const { body } = await client(first, 'web', 'fullchain.crt');
    await first.end();

    // Asked at the start; the CA's own window is about a day on both sides of the last third.
    const second = await vault.serve();
    const usual = await eventually('the window is known', () => {
      const row = planned();
      return row?.ari_window_start === null ? undefined : row;
    });
    assert.ok(usual.next_renewal_at > Date.now() + 24 * hour);
    await second.end();

    const now = Date.now();
    await vault.ca.setRenewalInfo(body, { start: new Date(now - 2 * hour), end: new Date(now - hour) });
    // As if the CA's Retry-After were over.
    vault.query('update certificates set ari_check_at = 0');
    await vault.serve();
    const renewed = await eventually('the certificate is replaced', () => {
      const row = planned();
      return row?.current_version === 2 ? row : undefined;
    });
    assert.ok(renewed.next_renewal_at > now + 24 * hour, 'the new one is left alone');
    assert.match(vault.ca.log(), /ARI: order "\S+" is a replacement of "\S+"/);
    assert.match(vault.ca.log(), /has been marked as replaced in the DB/);
    const [renewal] = vault.query<{ requested_by: string }>(
      'select requested_by from renewals order by id desc limit 1',
    );
    assert.equal(renewal?.requested_by, 'system');
  },
);

test(
  'a renewal window that is in the past when first fetched causes an immediate renewal of an old version',
  needsAcme('ari'),
  async (t) => {
    const vault = await acmeVault(t);
    const client = await vault.client();
    const first = await vault.serve();
    await vault.issue('web', '--domain', 'www.example.test');
    const { body } = await client(first, 'web', 'fullchain.crt');
    await first.end();
    const now = Date.now();
    await vault.ca.setRenewalInfo(body, { start: new Date(now - 2 * hour), end: new Date(now - hour) });
    // A version of the same hour would be left for a twentieth of its lifetime.
    letPass(vault, 10 * 24 * hour);
    await vault.serve();
    await eventually('the certificate is replaced', () => {
      const [row] = vault.query<Planned>('select current_version from certificates');
      return row?.current_version === 2 || undefined;
    });
    assert.match(vault.ca.log(), /ARI: order "\S+" is a replacement of "\S+"/);
  },
);
