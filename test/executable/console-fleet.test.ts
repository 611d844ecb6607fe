/** What clients report, in the console: the page Fleet, hosts, the deployments of a certificate, and API keys. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { day } from '../../src/base/duration.ts';
import { overflowOf } from '../harness/console/overflow.ts';
import { reporter } from '../harness/console/reports.ts';
import { type Person, rendered, signIn, type Visit, visit } from '../harness/console/visit.ts';
import { moveGeneration, outside } from '../harness/database/outside-database.ts';
import { eventually } from '../harness/eventually.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

const output = 'nginx: configuration file test failed';

async function opened(
  t: TestContext,
): Promise<Visit & { readonly person: Person; readonly dataDir: string }> {
  const dataDir = tempDir(t);
  const whole = await visit(t, { dataDir });
  return { ...whole, dataDir, person: await whole.alice({ reducedMotion: 'reduce' }) };
}

/** Makes the vault see rows as if time had gone by. */
function change(dataDir: string, sql: string, ...values: readonly unknown[]): void {
  outside(dataDir, (db) => db.prepare(sql).run(...values));
  moveGeneration(dataDir);
}

function silence(dataDir: string, host: string): void {
  const then = Date.now() - 5 * day;
  const sql = 'update deployments set last_seen_at = ?, silent_at = ? where host = ?';
  change(dataDir, sql, then, then + 2 * day, host);
}

/** Issues version 2, and makes it so old that every client had the time to install it. */
async function renew({ ask }: Person, dataDir: string, name: string): Promise<void> {
  await ask('POST', `/certificates/${name}/renew`, {});
  await eventually('version 2', async () => {
    const versions = (await ask('GET', `/certificates/${name}/versions`)) as readonly unknown[];
    return versions.length === 2;
  });
  change(dataDir, 'update certificate_versions set created_at = ? where version = 2', Date.now() - 3 * day);
}

/** The cells of each row of the table, without times. */
async function rowsOf(page: Page, caption: string, columns: number): Promise<string[][]> {
  const rows = await page.getByRole('table', { name: caption }).locator('tbody tr').all();
  return Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator('th, td').allInnerTexts();
      return cells.slice(0, columns).map((text) => text.replaceAll(/\s*\n\s*/g, ' | '));
    }),
  );
}

test(
  'the page Fleet says how hosts appear, and has a row for each from its first report on, without a reload',
  browser,
  async (t) => {
    const { person } = await opened(t);
    const { page, createCertificates } = person;
    await createCertificates('shop');
    await page.getByRole('navigation').getByRole('link', { name: 'Fleet', exact: true }).click();
    await page.getByRole('heading', { name: 'No hosts yet' }).waitFor();
    const report = await reporter(person, 'clients');
    await report('shop', 'web1');
    await page.getByText('1 job on 1 host, current.').waitFor();
    await report('shop', 'web2');
    await page.getByText('All 2 jobs on 2 hosts are current.').waitFor();
    await report('shop', 'web2', { reload: { result: 'failed', output } });
    await page.getByText('2 jobs on 2 hosts: 1 failing, 1 current.').waitFor();
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [
      ['web2', 'failing', '1 failing'],
      ['web1', 'current', '1 current'],
    ]);
  },
);

test(
  'hosts are listed with their worst state and counts, and found by name, certificate and state',
  browser,
  async (t) => {
    const { person, dataDir } = await opened(t);
    const { page, createCertificates, open } = person;
    await createCertificates('shop', 'mail');
    const report = await reporter(person, 'clients');
    await report('shop', 'web10');
    await report('shop', 'web9', { version: null, error: 'disk full' });
    await report('mail', 'web9');
    await report('mail', 'mx1');
    silence(dataDir, 'mx1');
    await open('/fleet');
    const web9 = ['web9', 'failing', '1 failing, 1 current'];
    const mx1 = ['mx1', 'silent', '1 silent'];
    const web10 = ['web10', 'current', '1 current'];
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [web9, mx1, web10]);
    const found = async (search: string, state: string) => {
      await page.getByLabel('Search').fill(search);
      await page.getByLabel('State').selectOption({ label: state });
      await rendered(page);
      return rowsOf(page, 'Hosts', 3);
    };
    assert.deepEqual(await found('MAIL', 'Any'), [web9, mx1]);
    await page.getByText('2 of 3 hosts match.').waitFor();
    assert.deepEqual(await found('mail', 'silent'), [mx1]);
    assert.deepEqual(await found('', 'all current'), [web10]);
    assert.equal(new URL(page.url()).search, '?state=current');
    await page.reload();
    await page.getByText('1 of 3 hosts match.').waitFor();
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [web10]);
    await page.getByLabel('Search').fill('nothing like it');
    await page.getByRole('heading', { name: 'No matching hosts' }).waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('link', { name: 'mx1' }).waitFor();
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [web9, mx1, web10]);
  },
);

test(
  'the page of a host has its jobs with why each has its state, and leads to their certificates',
  browser,
  async (t) => {
    const { person, dataDir } = await opened(t);
    const { page, createCertificates, open } = person;
    await createCertificates('shop', 'mail', 'db');
    const report = await reporter(person, 'clients');
    await report('shop', 'web 1/ä', { id: 'one', verify: { result: 'failed', output } });
    await report('mail', 'web 1/ä', { id: 'one', destination: '/etc/postfix' });
    await report('db', 'web 1/ä', { id: 'one' });
    await report('shop', 'web2');
    await renew(person, dataDir, 'db');
    await open('/fleet');
    await page.getByRole('link', { name: 'web 1/ä' }).click();
    await page.getByRole('heading', { level: 1, name: 'web 1/ä' }).waitFor();
    await page.getByText('3 jobs: 1 failing, 1 outdated, 1 current.').waitFor();
    assert.deepEqual(await rowsOf(page, 'Jobs', 3), [
      ['shop | /etc/nginx/tls', `failing | Verification failed: ${output}`, '1'],
      ['db | /etc/nginx/tls', 'outdated | Not installed in time', '1, current: 2'],
      ['mail | /etc/postfix', 'current', '1'],
    ]);
    await page.getByRole('link', { name: 'shop', exact: true }).click();
    await page.getByRole('tab', { name: 'Deployments', selected: true }).waitFor();
    await open('/fleet/web3');
    await page.getByRole('heading', { name: 'Host not found' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'View all hosts' }).first().click();
    await page.getByRole('heading', { level: 1, name: 'Fleet' }).waitFor();
  },
);

test(
  'a certificate says which hosts would break if it expired now, and on which it is live',
  browser,
  async (t) => {
    const { person, dataDir, expectComplaint } = await opened(t);
    const { page, createCertificates, move, open } = person;
    await createCertificates('shop');
    await open('/certificates/shop?tab=deployments');
    await page.getByRole('heading', { name: 'No deployments yet' }).waitFor();
    const report = await reporter(person, 'clients');
    await report('shop', 'new', { version: null });
    await page.getByText('No host would break if this certificate expired now').waitFor();
    await renew(person, dataDir, 'shop');
    await report('shop', 'web1', { version: 2 });
    await report('shop', 'web2');
    await report('shop', 'web3', { version: 2, reload: { result: 'failed', output } });
    await report('shop', 'web4', { version: 2 });
    silence(dataDir, 'web4');
    // Without live updates, which would load everything again.
    await page.evaluate('EventSource = class { addEventListener() {} close() {} }');
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await move('/fleet');
    const broken = /\/shop\/(rollout|versions)(\?|$)/;
    await page.route(broken, (route) => route.fulfill({ status: 500, json: {} }));
    expectComplaint(/status of 500/);
    await move('/certificates/shop?tab=deployments');
    const problems = page.getByRole('main').getByRole('alert');
    await problems.nth(1).waitFor();
    await page.unroute(broken);
    for (const one of (await problems.all()).toReversed())
      await one.getByRole('button', { name: 'Retry' }).click();
    await page.getByText('4 hosts would break if this certificate expired now').waitFor();
    await page.getByRole('list', { name: 'Rollout of version 2' }).waitFor();
    await open('/certificates/shop?tab=deployments');
    const outcome = page.getByRole('main').getByRole('listitem').filter({ hasText: /^\d/ });
    await page.getByText('4 hosts would break if this certificate expired now').waitFor();
    const rollout = page.getByRole('list', { name: 'Rollout of version 2' }).getByRole('listitem');
    await rollout.nth(2).waitFor();
    assert.deepEqual((await rollout.allInnerTexts()).slice(1), [
      'fetched by 2 of 4',
      'live on 1 of 4, 1 silent',
    ]);
    const texts = async () =>
      (await outcome.allInnerTexts()).map((text) => text.replace(/in \d+.*:/, 'in …:'));
    assert.deepEqual(await texts(), [
      '1 has an older version, which expires in …: web2',
      '3 have the current version: web1, web3, web4',
      '1 is silent, so its report may be old: web4',
      '1 has not installed it yet: new',
    ]);
    change(dataDir, 'update certificate_versions set not_after = ? where version = 1', Date.now() - day);
    await open('/certificates/shop?tab=deployments');
    await outcome.first().waitFor();
    assert.equal((await texts())[0], '1 has an expired version: web2');
    await report('shop', 'web2', { version: 2 });
    await page.getByText('4 have the current version').waitFor();
  },
);

test(
  'an API key has the hosts that use it, and says before its end which could no longer renew',
  browser,
  async (t) => {
    const { person } = await opened(t);
    const { page, createCertificates, open } = person;
    await createCertificates('shop');
    const report = await reporter(person, 'clients');
    await report('shop', 'web1');
    await report('shop', 'web2');
    const others = await reporter(person, 'others');
    await others('shop', 'mx1');
    await reporter(person, 'idle');
    await open('/api-keys');
    await page.getByRole('link', { name: 'clients', exact: true }).click();
    await page.getByRole('heading', { name: 'Hosts that use this key' }).waitFor();
    await page.getByRole('link', { name: 'web1' }).waitFor();
    assert.deepEqual(await rowsOf(page, 'Hosts', 2), [
      ['web1', 'current'],
      ['web2', 'current'],
    ]);
    await page.getByRole('main').getByRole('link', { name: 'View all API keys' }).click();
    await page.getByRole('link', { name: 'idle', exact: true }).click();
    await page.getByText('No job of the client installer reports with this key.').waitFor();
    await open('/api-keys');
    await page.getByRole('button', { name: 'Actions for clients' }).click();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByText('2 hosts use it: web1, web2.').waitFor();
  },
);

test(
  'a viewer whose reach is a label has only the hosts and jobs of its certificates',
  browser,
  async (t) => {
    const { person, visitor } = await opened(t);
    const { ask } = person;
    for (const name of ['shop', 'mail']) {
      await ask('POST', '/certificates', { name, domains: [`${name}.test`], labels: [`team=${name}`] });
    }
    const report = await reporter(person, 'clients');
    await report('shop', 'web1', { id: 'a' });
    await report('mail', 'web1', { id: 'b', error: 'disk full' });
    await report('mail', 'mx1');
    const bob = { name: 'bob', password: otherPassword, role: 'viewer', reach: ['team=shop'] };
    await ask('POST', '/administrators', bob);
    const { page, open } = await visitor();
    await open('/sign-in');
    await signIn(page, 'bob', otherPassword);
    await open('/fleet');
    await page.getByText('1 job on 1 host, current.').waitFor();
    assert.deepEqual(await rowsOf(page, 'Hosts', 3), [['web1', 'current', '1 current']]);
    await page.getByRole('link', { name: 'web1' }).click();
    await page.getByText('1 job: 1 current.').waitFor();
    assert.equal((await rowsOf(page, 'Jobs', 2)).length, 1);
    await open('/fleet/mx1');
    await page.getByRole('heading', { name: 'Host not found' }).waitFor();
    await open('/certificates/shop?tab=deployments');
    await page.getByText('1 host would break if this certificate expired now').waitFor();
  },
);

test('hundreds of hosts and jobs fit in either theme, wide and narrow, and are found', browser, async (t) => {
  const { person, dataDir } = await opened(t);
  const { page, createCertificates, move } = person;
  const name = 'a-certificate-with-a-long-name.department.example.test';
  await createCertificates(name);
  const report = await reporter(person, 'clients');
  const failure = { reload: { result: 'failed', output: output.repeat(10) } };
  await report(name, 'a-host-with-a-long-name.department.example.test', { id: 'first', ...failure });
  const rest = `insert into deployments (certificate_id, api_key_id, name, host, job, destination, version, reload,
      reload_output, created_at, changed_at, last_seen_at, silent_at)
    select certificate_id, api_key_id, 'more-' || n, 'host-' || n || '.department.example.test', job, destination, 1,
      case when n < 4 then 'failed' else 'ok' end, reload_output, created_at, changed_at, last_seen_at, silent_at
    from deployments, numbers where name = 'first'`;
  const numbers =
    'with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < 299)';
  change(dataDir, `${numbers} ${rest}`);
  const faults: string[] = [];
  for (const path of ['/fleet', `/certificates/${name}?tab=deployments`]) {
    await move(path);
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const width of [360, 390, 768, 1280]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 800 });
        await rendered(page);
        const heights = await page
          .locator('tbody tr:not(.table-gap)')
          .evaluateAll((rows) => rows.map((row) => Math.round(row.getBoundingClientRect().height)));
        const overflow = await overflowOf(page);
        if (overflow > 0) faults.push(`${path}, ${width}: overflows by ${overflow}`);
        if (Math.max(...heights) - Math.min(...heights) > 1)
          faults.push(`${path}, ${width}: heights ${[...new Set(heights)].join()}`);
        if (heights.length >= 300) faults.push(`${path}, ${width}: all rows are rendered`);
      }
    }
    await page.getByLabel('Search').fill('host-299');
    await page.getByText(/^1 of 300 (hosts|jobs) match\.$/).waitFor();
  }
  assert.deepEqual(faults, []);
});
