/** Endpoints in the console: the tab of the page Fleet, the page of one, and those of a certificate. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { day } from '../../src/base/duration.ts';
import { encodePem } from '../../src/crypto/pem.ts';
import { makeChain } from '../harness/ca/private-chain.ts';
import { overflowOf } from '../harness/console/overflow.ts';
import { tlsEndpoint } from '../harness/console/tls-endpoint.ts';
import { type Person, rendered, signIn, type Visit, visit } from '../harness/console/visit.ts';
import { moveGeneration, outside } from '../harness/database/outside-database.ts';
import { eventually } from '../harness/eventually.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

type Opened = Visit & { readonly person: Person; readonly dataDir: string };

/** A vault that checks loopback addresses. */
async function opened(t: TestContext): Promise<Opened> {
  const dataDir = tempDir(t);
  const start = () => serve(t, dataDir, { args: ['--endpoint-allow', '127.0.0.1'] });
  const whole = await visit(t, { dataDir, start });
  return { ...whole, dataDir, person: await whole.alice({ reducedMotion: 'reduce' }) };
}

/** Makes the vault see rows as if a check had seen them. */
function change(dataDir: string, sql: string, ...values: readonly unknown[]): void {
  outside(dataDir, (db) => db.prepare(sql).run(...values));
  moveGeneration(dataDir);
}

/** The cells of each row of the table, without times. */
async function rowsOf(page: Page, columns: number): Promise<string[][]> {
  const rows = await page.getByRole('table', { name: 'Endpoints' }).locator('tbody tr').all();
  return Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator('th, td').allInnerTexts();
      return cells.slice(0, columns).map((text) => text.replaceAll(/\s*\n\s*/g, ' | '));
    }),
  );
}

const dialogOf = (page: Page) => page.getByRole('dialog');

/** Adds endpoints that no check reaches: those of the documentation network, never due. */
async function addUnchecked({ person, dataDir }: Opened, ...endpoints: readonly object[]): Promise<void> {
  for (const body of endpoints) await person.ask('POST', '/endpoints', body);
  change(
    dataDir,
    'update endpoints set next_check_at = ?, checked_at = null, failures = 0, error = null',
    4e12,
  );
}

/** What a check would have seen at the endpoint of this id. */
function seen({ dataDir }: Opened, id: number, facts: Readonly<Record<string, unknown>>): void {
  const now = Date.now();
  const all = {
    ...{ fingerprint_sha256: 'ab'.repeat(32), version: null, names: '["other.example.test"]', problem: null },
    ...{ issuer: 'CN=Elsewhere', not_before: now - 60 * day, not_after: now + 60 * day, checked_at: now },
    ...{ tls_version: 'TLSv1.3', chain_complete: 1, ocsp_stapled: 0, failures: 0, error: null },
    ...facts,
  };
  const columns = Object.keys(all).map((name) => `${name} = ?`);
  change(dataDir, `update endpoints set ${columns.join()} where id = ?`, ...Object.values(all), id);
}

test(
  'an endpoint is added in the empty tab, has its state after the first check without a reload, and is checked, changed and removed',
  browser,
  async (t) => {
    const whole = await opened(t);
    const { person, expectComplaint } = whole;
    const { page, createCertificates } = person;
    await page.clock.install();
    await createCertificates('shop.example.test', 'other.example.test');
    const server = await tlsEndpoint(t, whole, person, 'shop.example.test');
    await page.getByRole('navigation').getByRole('link', { name: 'Fleet', exact: true }).click();
    await page.getByRole('tab', { name: 'Endpoints' }).click();
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await page.getByRole('button', { name: 'Add endpoint' }).click();
    const dialog = dialogOf(page);
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    assert.equal(await add.isDisabled(), true, 'without an address');
    expectComplaint(/status of 400/);
    await dialog.getByLabel('Address').fill('https://shop.example.test/');
    await add.click();
    await dialog.locator('.field-error', { hasText: 'is not an address' }).waitFor();
    expectComplaint(/status of 404 .*\/endpoints$/);
    await dialog.getByLabel('Address').fill(server.address);
    await dialog.getByLabel('Certificate (optional)').fill('shop.example.tes');
    await dialog.locator('option[value="shop.example.test"]').waitFor({ state: 'attached' });
    await add.click();
    await dialog.getByRole('alert').filter({ hasText: 'shop.example.tes' }).waitFor();
    await dialog.getByLabel('Certificate (optional)').fill('shop.example.test');
    await add.click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('1 endpoint, current.').waitFor();
    const handshake = `${server.address} | TLS, server name shop.example.test`;
    assert.deepEqual(await rowsOf(page, 4), [[handshake, 'current', 'shop.example.test', '1']]);

    await server.serve('other.example.test');
    await page.getByRole('link', { name: server.address }).click();
    await page.getByRole('heading', { level: 1, name: server.address }).waitFor();
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('Not a version of certificate shop.example.test.').waitFor();
    const fact = (name: string) => page.locator(`dt:text-is(${JSON.stringify(name)}) + dd`).innerText();
    assert.equal(await fact('Names'), 'other.example.test');
    assert.equal(await fact('Accepted by clients'), 'no');

    const action = async (name: string) => {
      await page.getByRole('button', { name: 'More actions for this endpoint' }).click();
      await page.getByRole('button', { name }).click();
    };
    await action('Edit…');
    assert.equal(await dialog.getByLabel('Address').inputValue(), server.address);
    assert.equal(await dialog.getByLabel('Certificate (optional)').inputValue(), 'shop.example.test');
    await dialog.getByLabel('Certificate (optional)').fill('other.example.test');
    await dialog.getByLabel('Server name (optional)').fill('');
    await dialog.getByLabel('Check every').fill('10m');
    // What another operator changes meanwhile stays.
    await person.ask('PATCH', '/endpoints/1', { trust: 'private-ca' });
    await page.getByText('private CAs of the vault', { exact: true }).waitFor();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.locator('.page-title').getByText('current', { exact: true }).waitFor();
    assert.deepEqual(
      [await fact('Expected certificate'), await fact('Server name'), await fact('Interval')],
      ['other.example.test', 'other.example.test', '10m'],
    );
    assert.equal(await fact('Clients trust'), 'private CAs of the vault');

    // One failed check is not news, so no live update shows it.
    server.stop();
    await page.getByRole('button', { name: 'Check now' }).click();
    await page.getByText('Last check failed: connection refused').waitFor();

    // A live update arrives when the endpoint is gone, before the response to its removal.
    await page.route('**/api/v1/endpoints/1', async (route) => {
      if (route.request().method() !== 'DELETE') return route.fallback();
      const response = await route.fetch();
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
      // The update waits for others, and then for as long as the last one took.
      for (const _ of ['others', 'the last']) await page.clock.fastForward('01:00');
      return route.fulfill({ response });
    });
    await action('Remove…');
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    assert.equal(new URL(page.url()).search, '?tab=endpoints');
    assert.deepEqual(await person.ask('GET', '/endpoints'), []);
  },
);

test(
  'endpoints have what they serve and why they have their state, and are found by search and state',
  browser,
  async (t) => {
    const whole = await opened(t);
    const { page, createCertificates, open } = whole.person;
    await createCertificates('shop');
    const { root } = await makeChain();
    await addUnchecked(
      whole,
      { address: '192.0.2.10:443', certificate: 'shop' },
      { address: '192.0.2.9', certificate: 'shop', starttls: 'smtp', server_name: 'mail.example.test' },
      { address: '192.0.2.8:443', certificate: 'shop', ca_pem: encodePem('CERTIFICATE', root.certificate) },
      { address: 'partner.example.test:443' },
    );
    seen(whole, 2, {});
    seen(whole, 3, { failures: 2, error: 'connection refused' });
    seen(whole, 4, { names: '["partner.example.test","a.test"]', not_after: Date.now() + 2 * day });
    await open('/fleet?tab=endpoints');
    await page
      .getByText('4 endpoints: 1 unknown, 1 unreachable, 1 expiring, 1 unchecked.', { exact: true })
      .waitFor();
    const unknown = [
      '192.0.2.9:25 | STARTTLS in SMTP, server name mail.example.test',
      'unknown | Not a version of certificate shop',
      ...['shop', 'another: other.example.test'],
    ];
    const unreachable = [
      '192.0.2.8:443 | TLS, server name shop',
      'unreachable | Connection refused',
      ...['shop', 'another: other.example.test'],
    ];
    const expiring = [
      'partner.example.test:443 | TLS',
      ...['expiring', 'only watched', 'partner.example.test and 1 more'],
    ];
    const unchecked = ['192.0.2.10:443 | TLS, server name shop', 'unchecked', 'shop', '—'];
    assert.deepEqual(await rowsOf(page, 4), [unknown, unreachable, expiring, unchecked]);
    const found = async (search: string, state: string) => {
      await page.getByLabel('Search').fill(search);
      await page.getByLabel('State').selectOption({ label: state });
      await rendered(page);
      return rowsOf(page, 4);
    };
    assert.deepEqual(await found('smtp', 'Any'), [unknown]);
    assert.deepEqual(await found('', 'expiring'), [expiring]);
    await page.getByText('1 of 4 endpoints match.').waitFor();
    await page.reload();
    await page.getByText('1 of 4 endpoints match.').waitFor();
    assert.deepEqual(await found('shop', 'expiring'), []);
    await page.getByRole('heading', { name: 'No matching endpoints' }).waitFor();
    // A state that only endpoints have hides no host.
    await page.getByRole('tab', { name: 'Hosts' }).click();
    await page.getByRole('heading', { name: 'No hosts yet' }).waitFor();
    await open('/fleet/endpoints/3');
    await page.getByRole('button', { name: 'More actions for this endpoint' }).click();
    await page.getByRole('button', { name: 'Edit…' }).click();
    await dialogOf(page).getByText('Leave it empty to keep the current ones.').waitFor();
  },
);

test(
  'a certificate has its endpoints with a picture of what they serve, and suggests those of its names',
  browser,
  async (t) => {
    const whole = await opened(t);
    const { person } = whole;
    const { page, ask, open } = person;
    const watched = 'watched.example.test';
    const domains = ['shop.example.test', 'mx1.example.test', watched, '*.shop.example.test'];
    await ask('POST', '/endpoints', { address: watched });
    await ask('POST', '/certificates', { name: 'shop', domains, issuer: 'local-ca' });
    await eventually('version 1', async () => {
      const [one] = (await ask('GET', '/certificates/shop/versions')) as readonly unknown[];
      return one !== undefined;
    });
    await open('/certificates/shop?tab=deployments');
    await page.getByText('No endpoints yet.').waitFor();
    await page.getByRole('button', { name: 'Add mx1.example.test:25' }).click();
    const dialog = dialogOf(page);
    assert.equal(await dialog.getByLabel('Certificate (optional)').inputValue(), 'shop');
    assert.equal(await dialog.getByLabel('Protocol').inputValue(), 'smtp');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'mx1.example.test:25' }).waitFor();
    const suggested = page.getByRole('button', { name: /^Add \S+:/ });
    assert.deepEqual(await suggested.allInnerTexts(), ['Add shop.example.test:443']);
    await addUnchecked(
      whole,
      { address: '192.0.2.1:443', certificate: 'shop' },
      { address: '192.0.2.2:443', certificate: 'shop' },
    );
    const [version] = (await ask('GET', '/certificates/shop/versions')) as Record<string, string>[];
    const fingerprint_sha256 = version?.fingerprint_sha256;
    for (const id of [2, 3]) seen(whole, id, { fingerprint_sha256, version: 1 });
    seen(whole, 4, { not_after: Date.now() + 30 * day });
    await open('/certificates/shop?tab=deployments');
    const picture = page.getByRole('img', { name: /^Served now: / });
    const words = await picture.getAttribute('aria-label');
    assert.match(
      words ?? '',
      /^Served now: Version 1, which expires .+, by 2 endpoints; Another certificate, which expires .+, by 1 endpoint\.$/,
    );
    assert.deepEqual(await page.locator('.timeline-names li').allInnerTexts(), [
      'Another certificate',
      'Version 1',
    ]);
    assert.deepEqual(await page.locator('.timeline-mark text').allTextContents(), ['1', '2']);
    await page.locator('.timeline-mark').nth(1).hover();
    await page
      .getByRole('tooltip')
      .filter({ hasText: /^Served by .*192\.0\.2\.1:443/ })
      .waitFor();
  },
);

test(
  'a viewer whose reach is a label sees the endpoints of its certificates, and may not check, change or add any',
  browser,
  async (t) => {
    const whole = await opened(t);
    const { person, visitor, expectComplaint } = whole;
    const { ask } = person;
    for (const name of ['shop', 'mail']) {
      await ask('POST', '/certificates', { name, domains: [`${name}.test`], labels: [`team=${name}`] });
    }
    await addUnchecked(
      whole,
      { address: '192.0.2.1:443', certificate: 'shop' },
      { address: '192.0.2.2:443', certificate: 'mail' },
      { address: '192.0.2.3:443' },
    );
    const bob = { name: 'bob', password: otherPassword, role: 'viewer', reach: ['team=shop'] };
    await ask('POST', '/administrators', bob);
    const { page, open } = await visitor();
    await open('/sign-in');
    await signIn(page, 'bob', otherPassword);
    await open('/fleet?tab=endpoints');
    assert.deepEqual(await rowsOf(page, 1), [['192.0.2.1:443 | TLS, server name shop.test']]);
    const refused = 'Requires the role operator; yours is viewer.';
    const reason = async (name: string) => {
      const button = page.getByRole('button', { name, exact: true });
      await button.click({ force: true });
      return button.getAttribute('title');
    };
    assert.equal(await reason('Add endpoint'), refused);
    await open('/fleet/endpoints/1');
    assert.equal(await reason('Check now'), refused);
    await page.getByRole('button', { name: 'More actions for this endpoint' }).click();
    for (const name of [/^Edit…/, /^Remove…/])
      await page.getByRole('button', { name }).click({ force: true });
    assert.equal(await dialogOf(page).count(), 0);
    await open('/certificates/shop?tab=deployments');
    assert.equal(await reason('Add shop.test:443'), refused);
    expectComplaint(/status of 403/);
    await open('/fleet/endpoints/2');
    await page.getByRole('alert').waitFor();
  },
);

test('five thousand endpoints fit in either theme, wide and narrow, and are found', browser, async (t) => {
  const whole = await opened(t);
  const { person, dataDir } = whole;
  const { page, createCertificates, move, open } = person;
  const name = 'a-certificate-with-a-long-name.department.example.test';
  await createCertificates(name);
  const address = 'a-host-with-a-long-name.department.example.test:10443';
  await addUnchecked(whole, { address, certificate: name, server_name: `sni.${name}` });
  seen(whole, 1, {
    problem: 'the chain of the certificate '.repeat(10),
    names: `["${'long.'.repeat(20)}test"]`,
  });
  const rest = `insert into endpoints (certificate_id, host, port, server_name, trust, check_every, created_at,
      next_check_at, checked_at, fingerprint_sha256, names, not_before, not_after, version)
    select case when n % 3 = 0 then null else certificate_id end, 'host-' || n || '.example.test', 443,
      'host-' || n || '.example.test', trust, check_every, created_at, next_check_at, checked_at,
      case when n < 9 then null else fingerprint_sha256 end, names, not_before, not_after,
      case when n % 3 = 1 then 1 end
    from endpoints, numbers where id = 1`;
  const numbers =
    'with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 4999)';
  change(dataDir, `${numbers} ${rest}`);
  await open('/fleet?tab=endpoints');
  await page.getByText(/^5,000 endpoints: /).waitFor();
  const faults: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [360, 390, 768, 1280]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await rendered(page);
      const rows = await page.locator('tbody tr:not(.table-gap)').evaluateAll((all) =>
        all.map((row) => ({
          height: Math.round(row.getBoundingClientRect().height),
          cut: row.scrollHeight - row.clientHeight,
        })),
      );
      const heights = rows.map(({ height }) => height);
      const overflow = await overflowOf(page);
      if (overflow > 0) faults.push(`${width}: overflows by ${overflow}`);
      if (Math.max(...heights) - Math.min(...heights) > 1)
        faults.push(`${width}: heights ${[...new Set(heights)].join()}`);
      if (rows.some(({ cut }) => cut > 1)) faults.push(`${width}: rows are cut`);
      if (rows.length >= 200) faults.push(`${width}: ${rows.length} rows are rendered`);
    }
  }
  assert.deepEqual(faults, []);
  await page.getByLabel('Search').fill('host-4999');
  await page.getByText('1 of 5,000 endpoints match.').waitFor();
  await move(`/certificates/${name}?tab=deployments`);
  await page.getByRole('img', { name: /^Served now: / }).waitFor();
  await page.getByRole('button', { name: `Add ${name}:443` }).waitFor();
  assert.equal(await overflowOf(page), 0);
});
