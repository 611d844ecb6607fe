/** Deploy targets in the console: their list, the page of one, and the deployments of a certificate. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type CertificateReceiver, certificateReceiver } from '../harness/console/certificate-receiver.ts';
import { overflowOf } from '../harness/console/overflow.ts';
import { type Person, rendered, signIn, type Visit, visit } from '../harness/console/visit.ts';
import { moveGeneration, outside } from '../harness/database/outside-database.ts';
import { eventually } from '../harness/eventually.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

/** A public key that no server has. */
const hostKey = 'AAAAC3NzaC1lZDI1NTE5AAAAIGvbv9KJtHrUDnhyoy0jpm8AJqv1Isjjs+CP4EW4rTjx';

type Opened = Visit & {
  readonly person: Person;
  readonly dataDir: string;
  readonly receiver: CertificateReceiver;
};

async function opened(t: TestContext): Promise<Opened> {
  const receiver = await certificateReceiver(t);
  const dataDir = tempDir(t);
  const whole = await visit(t, { dataDir });
  return { ...whole, receiver, dataDir, person: await whole.alice({ reducedMotion: 'reduce' }) };
}

const dialogOf = (page: Page) => page.getByRole('dialog');

/** The first cells of each row of the table. */
async function rowsOf(page: Page, table: string, columns: number): Promise<string[][]> {
  const rows = await page.getByRole('table', { name: table }).locator('tbody tr:not(.table-gap)').all();
  return Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator('th, td').allInnerTexts();
      return cells.slice(0, columns).map((text) => text.replaceAll(/\s*\n\s*/g, ' | '));
    }),
  );
}

/** Opens the menu of the page of a target, and selects an action. */
async function act(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'More actions for this target' }).click();
  await page.getByRole('button', { name }).click();
}

const heading = (page: Page, name: string) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

test(
  'a deploy target is added after its settings were corrected, installs without a reload, and is removed',
  browser,
  async (t) => {
    const { person, receiver, expectComplaint } = await opened(t);
    const { page, ask, createCertificates } = person;
    const { url, secret } = receiver.settings;
    await createCertificates('shop', 'mail', 'wiki');
    await page.getByRole('navigation').getByRole('link', { name: 'Deploy targets' }).click();
    await page.getByRole('heading', { name: 'No deploy targets yet' }).waitFor();
    await page.getByRole('button', { name: 'Add deploy target' }).click();
    const dialog = dialogOf(page);
    await dialog.getByLabel('Type').selectOption('webhook');
    await dialog.getByLabel('Name').fill('balancer');
    await dialog.getByLabel('URL').fill('http://balancer.example.test/');
    await dialog.getByLabel('Secret').fill(secret);
    assert.equal(await dialog.getByLabel('Secret').getAttribute('type'), 'password');
    expectComplaint(/status of 400/);
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await add.click();
    const invalid = dialog.locator('[aria-invalid]');
    await invalid.and(page.locator(':focus')).waitFor();
    assert.equal(await dialog.getByLabel('URL').getAttribute('aria-invalid'), 'true');
    assert.equal(await invalid.count(), 1);
    assert.match(await dialog.locator('.field-error').innerText(), /^must be an https:\/\/ URL/);
    await dialog.getByLabel('URL').fill(url);
    await add.click();
    await heading(page, 'balancer');
    await page.getByRole('heading', { name: 'No certificates on this target yet' }).waitFor();
    const everything = `document.documentElement.outerHTML +
      [...document.querySelectorAll('input, textarea')].map(({ value }) => value)`;
    assert(!String(await page.evaluate(everything)).includes(secret), 'the secret is still in the page');

    await page.getByRole('button', { name: 'Select certificates' }).click();
    await dialog.getByRole('checkbox', { name: 'shop' }).check();
    // Another operator adds one meanwhile.
    await ask('PATCH', '/deploy-targets/balancer', { certificates: ['wiki'] });
    await page.getByRole('link', { name: 'wiki', includeHidden: true }).waitFor({ state: 'attached' });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('webhook on').and(page.getByText('2 current')).waitFor();
    const installed = [
      [`shop | ${url}`, 'current', '1'],
      [`wiki | ${url}`, 'current', '1'],
    ];
    assert.deepEqual(await rowsOf(page, 'Certificates', 3), installed);
    assert.deepEqual(receiver.received().toSorted(), ['shop 1', 'wiki 1']);

    await page.getByRole('link', { name: 'shop' }).click();
    const host = new URL(url).host;
    const jobs = page.getByRole('table', { name: 'Jobs' });
    // By keyboard, because what loads above the table moves it.
    await jobs.getByRole('link', { name: host }).press('Enter');
    await heading(page, host);
    await jobs.getByRole('link', { name: 'balancer' }).first().press('Enter');
    await heading(page, 'balancer');

    await act(page, 'Remove…');
    await dialog.getByText('Installed certificates stay there, and expire.').waitFor();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('heading', { name: 'No deploy targets yet' }).waitFor();
    assert.deepEqual(await ask('GET', '/deploy-targets'), []);
  },
);

test(
  'the page of a target shows a failure without a reload, and the dialog of an installation its progress, failure and success',
  browser,
  async (t) => {
    const { person, receiver, expectComplaint } = await opened(t);
    const { page, ask, open, createCertificates } = person;
    await createCertificates('shop');
    await ask('POST', '/deploy-targets', { name: 'balancer', type: 'webhook', settings: receiver.settings });
    await open('/deploy-targets');
    const list = () => rowsOf(page, 'Deploy targets', 3);
    const host = new URL(receiver.url).host;
    assert.deepEqual(await list(), [[`balancer | webhook on ${host}`, '', 'none']]);
    receiver.respondWith(503);
    await ask('PATCH', '/deploy-targets/balancer', { certificates: ['shop'] });
    await page.getByText('1 failing').waitFor();
    await page.getByRole('link', { name: 'balancer' }).click();
    await page.getByText('503 Service Unavailable').waitFor();

    expectComplaint(/status of 502/);
    const install = page.getByRole('button', { name: 'Install now: shop' });
    const dialog = dialogOf(page);
    await install.click();
    await dialog
      .getByRole('alert')
      .getByText(/^Failed to deliver the certificate: .+\.$/)
      .waitFor();
    receiver.respondWith('silent');
    await dialog.getByRole('button', { name: 'Retry' }).click();
    await dialog.getByText('Installing; this can take a minute').waitFor();
    receiver.respondWith(204);
    await dialog.getByText('Version 1 is installed.').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await install.and(page.locator(':focus')).waitFor();
    assert.deepEqual(await rowsOf(page, 'Certificates', 3), [[`shop | ${receiver.url}`, 'current', '1']]);
    assert.deepEqual(receiver.received(), ['shop 1']);

    // A renewal is installed, too, and the page has the new version.
    await ask('POST', '/certificates/shop/renew', {});
    await page.getByRole('cell', { name: '2', exact: true }).waitFor();
    assert.deepEqual(receiver.received(), ['shop 1', 'shop 2']);
  },
);

test(
  'the form of a target has files, numbers and switches of its type, hides credentials, and sends programs to the command line',
  browser,
  async (t) => {
    const { person, expectComplaint } = await opened(t);
    const { page, ask, open } = person;
    await open('/deploy-targets');
    await page.getByRole('button', { name: 'Add deploy target' }).click();
    const dialog = dialogOf(page);
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await dialog.getByLabel('Type').selectOption('exec');
    await dialog.getByText('vault deploy-target add --type exec').waitFor();
    assert.equal(await add.isDisabled(), true, 'of a program');

    await dialog.getByLabel('Type').selectOption('ssh');
    for (const name of ['Passphrase', 'Password']) {
      assert.equal(await dialog.getByLabel(name).getAttribute('type'), 'password', name);
    }
    await dialog.getByLabel('Host', { exact: true }).fill('127.0.0.1');
    await dialog.getByLabel('User').fill('deploy');
    await dialog.getByLabel('Host key').fill(`ssh-ed25519 ${hostKey}`);
    await dialog.getByLabel('Port').fill('1');
    await dialog.getByLabel('Password').fill('open sesame');
    expectComplaint(/status of 400/);
    await add.click();
    const files = dialog.getByRole('group', { name: 'Files' });
    await files.getByRole('alert').getByText('must name at least one file').waitFor();
    await files.getByLabel('Fullchain').fill('tls/{certificate}.pem');
    await add.click();
    await files.locator('.field-error').getByText('must be an absolute path of a file').waitFor();
    await files.getByLabel('Fullchain').fill('/etc/tls/{certificate}.pem');
    await files.getByLabel('Private key').fill('/etc/tls/{certificate}.key');
    await add.click();
    await heading(page, 'ssh');
    await person.createCertificates('shop');
    await ask('PATCH', '/deploy-targets/ssh', { certificates: ['shop'] });
    await page.getByText('/etc/tls/shop.pem').waitFor();
    await page.getByText('127.0.0.1:1').waitFor();

    await act(page, 'Replace settings…');
    assert.equal(
      await dialog.getByLabel('Host', { exact: true }).inputValue(),
      '',
      'stored settings stay hidden',
    );
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: /^More/ }).and(page.locator(':focus')).waitFor();

    await page.getByRole('link', { name: 'View all targets' }).click();
    await page.getByRole('button', { name: 'Add deploy target' }).click();
    await dialog.getByLabel('Type').selectOption('kubernetes');
    assert.equal(await dialog.getByLabel('Secret').getAttribute('type'), 'text', 'the name of a secret');
    await dialog.getByLabel('In cluster').check();
    await add.click();
    await heading(page, 'kubernetes');
  },
);

test(
  'hundreds of targets are listed with failing ones first, and found by search and state on wide and narrow screens',
  browser,
  async (t) => {
    const { person, receiver, dataDir } = await opened(t);
    const { page, ask, open, createCertificates } = person;
    await createCertificates('shop');
    await ask('POST', '/deploy-targets', { name: 'one', type: 'webhook', settings: receiver.settings });
    outside(dataDir, (db) => {
      const target = db.prepare(
        `insert into deploy_targets (name, type, host, sealed_settings, created_at, changed_at)
         select ?, type, ?, sealed_settings, created_at, changed_at from deploy_targets where name = 'one'`,
      );
      const certificate = db.prepare(
        `insert into deploy_target_certificates (deploy_target_id, certificate_id, destination, attempts, error, due_at)
         select deploy_targets.id, certificates.id, '/etc/tls/shop.pem', ?, ?, 4000000000000
         from deploy_targets, certificates where deploy_targets.name = ?`,
      );
      for (let index = 0; index < 300; index += 1) {
        const name = `web-${index}`;
        target.run(name, `${name}.rack.department.example.test`);
        const error = index === 200 ? 'permission denied '.repeat(30).trim() : null;
        certificate.run(error === null ? 0 : 2, error, name);
      }
    });
    moveGeneration(dataDir);
    await open('/deploy-targets');
    const first = async () => (await rowsOf(page, 'Deploy targets', 3))[0];
    const failing = ['web-200 | webhook on web-200.rack.department.example.test', 'failing', '1 failing'];
    assert.deepEqual(await first(), failing);
    const table = page.getByRole('table', { name: 'Deploy targets' });
    assert.equal(await table.getAttribute('aria-rowcount'), '302');
    await page.getByLabel('Search').fill('web-299');
    await page.getByText('1 of 301 match.').waitFor();
    assert.equal((await first())?.[1], 'waiting');
    await page.getByLabel('State').selectOption('failing');
    await page.getByRole('heading', { name: 'No matches' }).waitFor();
    await page.getByRole('button', { name: 'Show all' }).click();
    await table.waitFor();
    for (const path of ['/deploy-targets', '/deploy-targets/web-200']) {
      await open(path);
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await rendered(page);
        assert.ok((await overflowOf(page)) <= 0, `${path} at ${width}`);
      }
    }
  },
);

test('a viewer sees the actions of a deploy target with the role that they need', browser, async (t) => {
  const { person, receiver, visitor } = await opened(t);
  await person.createCertificates('shop');
  const target = { type: 'webhook', settings: receiver.settings, certificates: ['shop'] };
  await person.ask('POST', '/deploy-targets', { name: 'balancer', ...target });
  await eventually('the installation', async () => receiver.received().length > 0);
  await person.ask('POST', '/administrators', { name: 'bob', password: otherPassword, role: 'viewer' });
  const { page, open } = await visitor();
  await open('/sign-in');
  await signIn(page, 'bob', otherPassword);
  const refused = async (name: string) => {
    const button = page.getByRole('button', { name });
    assert.equal(await button.getAttribute('title'), 'Requires the role admin; yours is viewer.', name);
    await button.click({ force: true });
  };
  await open('/deploy-targets');
  await refused('Add deploy target');
  await open('/deploy-targets/balancer');
  await page.getByRole('cell', { name: 'current' }).waitFor();
  for (const name of ['Select certificates', 'Install now: shop']) await refused(name);
  await page.getByRole('button', { name: 'More actions for this target' }).click();
  await page.getByRole('button', { name: 'Remove…' }).click({ force: true });
  await rendered(page);
  assert.equal(await dialogOf(page).count(), 0);
});
