/**
 * The console with a real ACME CA: forms for an issuer, a DNS provider and certificates, live steps of renewals, error
 * messages of the CA, and accounts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type AcmeFront, acmeFront } from '../harness/acme/front.ts';
import { needsAcme } from '../harness/acme/vault.ts';
import { pebble } from '../harness/ca/pebble.ts';
import { type Person, type Visit, visit } from '../harness/console/visit.ts';
import { type Bind, bind } from '../harness/dns/bind.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { freePorts } from '../harness/processes/port.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const missing = [needs('chromium'), needsAcme()].find(({ skip }) => skip !== undefined);

/** The external account of a customer of the CA. */
const customer = {
  id: 'customer-1',
  key: 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W',
};

type World = { readonly there: Visit; readonly alice: Person; readonly ca: AcmeFront; readonly dns: Bind };

/** A CA behind a proxy that can hold its orders, so that the page shows them in progress. */
async function world(t: TestContext): Promise<World> {
  const records = ['* A 127.0.0.1', '@ A 127.0.0.1', 'down A 127.0.0.2'];
  const dns = await bind(t, { zones: [{ name: 'example.test', records }] });
  const [httpPort = 0] = await freePorts(1);
  const eab = { [customer.id]: customer.key };
  const ca = await acmeFront(
    t,
    await pebble(t, { dnsServer: dns.server, httpPort, eab, retryAfter: 1, authzReuse: 0 }),
  );
  const args = ['--resolver', dns.server, '--acme-http-listen', `127.0.0.1:${httpPort}`];
  const dataDir = tempDir(t);
  const there = await visit(t, { dataDir, start: () => serve(t, dataDir, { args }) });
  return { there, alice: await there.alice({ reducedMotion: 'reduce' }), ca, dns };
}

test(
  'an ACME CA is added, issues and fails with live updates, and its account is deleted',
  missing ?? {},
  async (t) => {
    const all = await world(t);
    await t.test('the terms of service are shown before it is added', () => addIssuer(all));
    await t.test('the first order is shown step by step', () => watchIssue(all));
    await t.test('a failure shows the error of the CA and the time of the next attempt', () =>
      watchFailure(all.alice),
    );
    await t.test('a DNS provider is added and tested, and a wildcard is issued', () => issueByDns(all));
    await t.test('an account is rolled over, deactivated, and deleted once no issuer uses it', () =>
      deleteAccount(all),
    );
  },
);

async function addIssuer({ there, alice: { page, open }, ca }: World): Promise<void> {
  await open('/issuers');
  await page.getByRole('button', { name: 'Add ACME CA' }).click();
  const dialog = page.getByRole('dialog');
  assert.equal(await dialog.getByLabel('Name').inputValue(), 'letsencrypt');
  await dialog.getByLabel('Name').fill('pebble');
  await dialog.getByLabel('Directory').fill(ca.directoryUrl);
  await dialog.getByLabel('Email').fill('ops@example.test');
  await dialog.locator('summary').click();
  await dialog.getByLabel('External account: key ID').fill(customer.id);
  await dialog.getByLabel('External account: HMAC key').fill(customer.key);
  await dialog.getByLabel('Trusted roots').fill(readFileSync(ca.caFile, 'utf8'));
  there.expectComplaint(/status of 400.*issuers/);
  await dialog.getByRole('button', { name: 'Add' }).click();
  await dialog.getByText('Terms of service', { exact: true }).waitFor();
  // Pebble's terms are not at an http(s) URL, so they are not a link.
  await dialog.getByText(/^data:text\/plain,/).waitFor();
  assert.equal(await dialog.getByRole('link').count(), 0);
  assert.equal(await dialog.getByRole('button', { name: 'Accept and add' }).isDisabled(), true);
  await dialog.getByLabel('I accept the terms of service').check();
  await dialog.getByRole('button', { name: 'Add' }).click();
  await page.getByRole('row').filter({ hasText: ca.directoryUrl }).getByText('accepted').waitFor();
  await page.getByRole('button', { name: 'Actions for pebble' }).click();
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await dialog.getByText('pebble is reachable and its HTTPS certificate is trusted').waitFor();
  await page.keyboard.press('Escape');
}

/** Creates a certificate of the CA with the form, which then shows its page. */
async function order({ page, open }: Person, domain: string, challenge: string): Promise<void> {
  await open('/new-certificate');
  await page.getByLabel('Domains').fill(domain);
  await page.getByLabel('Issuer', { exact: true }).selectOption('pebble');
  await page.getByLabel('Challenge').selectOption(challenge);
  await page.getByRole('button', { name: 'Create certificate' }).click();
  await page.getByRole('heading', { level: 1, name: domain.replace('*', 'wildcard') }).waitFor();
}

/** Marks the page, to check later that it was not reloaded. */
const mark = (page: Page) => page.evaluate('globalThis.isMarked = true');
const isMarked = (page: Page) => page.evaluate('globalThis.isMarked === true');

async function watchIssue({ alice, ca }: World): Promise<void> {
  const { page } = alice;
  const first = ca.hold('request', /finalize/);
  await order(alice, 'www.example.test', 'http-01');
  await mark(page);
  const renewal = page.locator('.renewal');
  const step = (text: string | RegExp) =>
    renewal.getByRole('listitem').filter({ hasText: text }).first().waitFor();
  await renewal.getByText('In progress').waitFor();
  await step(/http-01/);
  first.release();
  await renewal.getByText('Issued version 1.').waitFor();
  await step(/certificate/);
  await page.getByRole('link', { name: 'private.key' }).waitFor();

  const second = ca.hold('request', /finalize/);
  await page.getByRole('button', { name: 'Renew now' }).click();
  await renewal.getByText('In progress').waitFor();
  assert.equal(
    await page.getByRole('button', { name: 'Renew now' }).isDisabled(),
    true,
    'only one renewal at a time',
  );
  second.release();
  await renewal.getByText('Issued version 2.').waitFor();
  await page.getByText('Renews automatically').waitFor();
  assert.equal(await isMarked(page), true, 'the page was reloaded');
}

async function watchFailure(alice: Person): Promise<void> {
  const { page, move } = alice;
  await order(alice, 'down.example.test', 'http-01');
  await mark(page);
  await page.getByText('Renewal failed', { exact: true }).waitFor();
  const message = page.getByRole('blockquote').filter({ hasText: /down\.example\.test.*refused/ });
  await message.first().waitFor();
  const notice = page.getByText('Retrying');
  await notice.waitFor();
  const at = await notice.locator('time').first().getAttribute('datetime');
  const { renewal } = (await alice.ask('GET', '/certificates/down.example.test')) as {
    renewal: { next_at: string };
  };
  assert.equal(at, renewal.next_at);
  assert.ok(Date.parse(renewal.next_at) > Date.now());
  await move('/renewals?status=failed');
  await page
    .getByText(/down\.example\.test.*refused/)
    .first()
    .waitFor();
  await move('/certificates');
  await page.getByRole('table').getByText('renewal failed', { exact: true }).waitFor();
  assert.equal(await isMarked(page), true, 'the page was reloaded');
}

async function issueByDns({ alice, dns }: World): Promise<void> {
  const { page, open } = alice;
  await open('/dns-providers');
  await page.getByRole('button', { name: 'Add DNS provider' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Type').selectOption('rfc2136');
  await dialog.getByLabel('Name', { exact: true }).fill('bind');
  await dialog.getByLabel('Zones').fill('example.test');
  await dialog.getByLabel('Server').fill(dns.server);
  await dialog.getByLabel('Key name').fill(dns.keyName);
  await dialog.getByLabel('Secret').fill(dns.secret);
  await dialog.getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Test bind' }).click();
  await dialog.getByRole('button', { name: 'Test' }).click();
  await dialog.getByText('bind can validate example.test').waitFor();
  assert.ok((await dialog.getByRole('listitem').count()) > 1, 'no steps are shown');
  assert.deepEqual(await dns.txt('_acme-challenge.example.test'), [], 'the record is still there');
  await dialog.getByRole('button', { name: 'Close' }).click();

  await order(alice, '*.example.test', '');
  const renewal = page.locator('.renewal');
  await renewal
    .getByRole('listitem')
    .filter({ hasText: /dns-01/ })
    .first()
    .waitFor();
  await renewal.getByText('Issued version 1.').waitFor();
}

async function deleteAccount({ alice: { page, move, ask } }: World): Promise<void> {
  const dialog = page.getByRole('dialog');
  const choose = async (action: string) => {
    await page.getByRole('button', { name: 'Actions for account 1' }).click();
    await page.getByRole('button', { name: action }).click();
    await dialog.getByRole('button', { name: action }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  await move('/acme-accounts');
  const row = page.getByRole('row').filter({ hasText: 'Account 1' });
  await row.getByText('Used by issuer pebble.').waitFor();
  await page.getByRole('button', { name: 'Actions for account 1' }).click();
  assert.equal(await row.getByRole('button', { name: 'Delete' }).count(), 0);
  await page.keyboard.press('Escape');
  await choose('Roll over key');

  await choose('Deactivate');
  await row.getByText('deactivated').waitFor();
  // The next order registers a new account.
  await ask('POST', '/certificates/www.example.test/renew', {});
  await row.getByText('Not used').waitFor();
  await choose('Delete');
  await row.waitFor({ state: 'detached' });
  const events = (await ask('GET', '/audit-events')) as { actor: string; action: string }[];
  const done = events
    .filter(({ actor, action }) => actor === 'admin:alice' && action.startsWith('acme_account.'))
    .map(({ action }) => action);
  assert.deepEqual(done.reverse(), [
    'acme_account.rollover',
    'acme_account.deactivate',
    'acme_account.delete',
  ]);
}
