/** The console as people with the role viewer or operator have it: what they may not do is there, and says why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Person, type Visit, visit } from '../harness/console/visit.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

async function bobWith(role: string, { visitor, command }: Visit, alice: Person): Promise<Person> {
  await alice.ask('POST', '/administrators', { name: 'bob', password: otherPassword, role });
  assert.match(await command('admin', 'list'), new RegExp(`bob +${role} `));
  const bob = await visitor();
  await signInAs(bob, 'bob');
  return bob;
}

async function signInAs({ open, page }: Person, name: string): Promise<void> {
  await open('/sign-in');
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(otherPassword);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
}

/** The reason that a refused button gives. */
async function reason({ page }: Person, name: string): Promise<string | null> {
  const button = page.getByRole('button', { name, exact: true });
  assert.equal(await button.getAttribute('aria-disabled'), 'true', name);
  await button.click({ force: true });
  return button.getAttribute('title');
}

test('a viewer sees each action with the role that it needs, and none does anything', browser, async (t) => {
  const opened = await visit(t);
  const alice = await opened.alice();
  await alice.createCertificates('www.example.test');
  const bob = await bobWith('viewer', opened, alice);
  const { page, open } = bob;
  const needsOperator = 'Requires the role operator; yours is viewer.';
  const needsAdmin = 'Requires the role admin; yours is viewer.';
  assert.equal(await reason(bob, 'Create certificate'), needsOperator);
  assert.equal(new URL(page.url()).pathname, '/');
  await open('/certificates/www.example.test');
  assert.equal(await reason(bob, 'Renew now'), needsOperator);
  await page.getByRole('button', { name: 'More actions for this certificate' }).click();
  await page.getByRole('button', { name: /^Delete…/ }).click({ force: true });
  await page.getByText(needsOperator).first().waitFor();
  assert.equal(await page.getByRole('dialog').count(), 0);
  await open('/administrators');
  assert.equal(await reason(bob, 'Add administrator'), needsAdmin);
  assert.equal(await reason(bob, 'Remove bob'), needsAdmin);
  await open('/issuers');
  assert.equal(await reason(bob, 'Add private CA'), needsAdmin);
  await open('/api-keys/new');
  assert.equal(await reason(bob, 'Create API key'), needsOperator);
  assert.deepEqual(await alice.ask('GET', '/api-keys'), []);
});

test(
  'an administrator makes a viewer an operator, who creates a certificate and downloads no private key',
  browser,
  async (t) => {
    const opened = await visit(t);
    const alice = await opened.alice();
    const bob = await bobWith('viewer', opened, alice);
    await alice.open('/administrators');
    await alice.page.getByRole('button', { name: 'Change role of bob' }).click();
    await alice.page.getByRole('dialog').getByLabel('Role').selectOption('operator');
    await alice.page.getByRole('dialog').getByRole('button', { name: 'Change role' }).click();
    await alice.page.getByRole('cell', { name: 'operator', exact: true }).waitFor();
    await bob.open('/new-certificate');
    await bob.createCertificates('www.example.test');
    await bob.open('/certificates/www.example.test');
    await bob.page.getByRole('link', { name: 'fullchain.crt' }).waitFor();
    const needsAdmin = 'Requires the role admin; yours is operator.';
    for (const file of ['private.key', 'combined.pem', 'keystore.p12', 'archive.tar']) {
      assert.equal(await reason(bob, file), needsAdmin, file);
    }
  },
);

test(
  'a person whose reach is a label opens every page without a refused request, and creates what has the label',
  browser,
  async (t) => {
    const opened = await visit(t);
    const alice = await opened.alice();
    const web = { name: 'shop', domains: ['shop.example.test'], labels: ['team=web'] };
    for (const body of [web, { name: 'mail', domains: ['mail.example.test'] }]) {
      await alice.ask('POST', '/certificates', body);
    }
    const url = 'http://127.0.0.1:9/hook';
    const channel = { name: 'ops', type: 'webhook', settings: { url }, labels: ['team=web'] };
    await alice.ask('POST', '/notification-channels', channel);
    await alice.open('/administrators');
    await alice.page.getByRole('button', { name: 'Add administrator' }).click();
    const dialog = alice.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('bob');
    await dialog.getByLabel('Password').fill(otherPassword);
    await dialog.getByLabel('Role').selectOption('operator');
    await dialog.getByLabel('Reach (optional)').fill('team=web');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await alice.page.getByText('Only team=web').waitFor();
    const { page, open, ...rest } = await opened.visitor();
    const bob = { page, open, ...rest };
    await signInAs(bob, 'bob');
    await page.getByRole('rowheader').getByRole('link', { name: 'shop', exact: true }).waitFor();
    assert.equal(await page.getByRole('rowheader').getByRole('link', { name: 'mail' }).count(), 0);
    const outside = 'Concerns the whole vault; your reach is team=web.';
    assert.equal(await reason(bob, 'Deleted'), outside);
    const closed = new Set([
      ...['Audit log', 'ACME accounts', 'Deploy targets', 'Notifications', 'Administrators'],
    ]);
    const labels = await page.getByRole('navigation').getByRole('listitem').allInnerTexts();
    assert(labels.length > closed.size);
    for (const name of labels) {
      await page.getByRole('navigation').getByRole('link', { name, exact: true }).click();
      await page.getByRole('heading', { name, exact: true }).waitFor();
      if (closed.has(name)) await page.getByText(outside).waitFor();
    }
    await open('/certificates/shop');
    for (const name of ['Versions', 'Access', 'Audit log']) {
      await page.getByRole('tab', { name, exact: true }).click();
    }
    await page.getByText(outside).waitFor();
    await open('/new-certificate');
    await page.getByLabel('Domains').fill('new.example.test');
    assert.equal(await page.getByLabel('Labels').inputValue(), 'team=web');
    await page.getByRole('button', { name: 'Create certificate' }).click();
    await page.getByRole('heading', { name: 'new.example.test' }).waitFor();
    await open('/api-keys/new');
    await page.getByLabel('Name').fill('ci');
    await page.getByLabel('Certificates by label (optional)').fill('team=web');
    await page.getByLabel('Administration').selectOption('viewer');
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('The key is shown only once').waitFor();
    const [key] = (await alice.ask('GET', '/api-keys')) as Record<string, unknown>[];
    const { labels: own, reach, certificates, certificate_labels: byLabel } = key ?? {};
    assert.deepEqual([own, reach, certificates, byLabel], [['team=web'], ['team=web'], [], ['team=web']]);
  },
);

test(
  'an operator is confined to profiles on the page of administrators, and has them in the forms of certificates and keys',
  browser,
  async (t) => {
    const opened = await visit(t);
    const alice = await opened.alice();
    await alice.ask('POST', '/issuers', { type: 'local-ca', name: 'other-ca' });
    for (const [issuer, name] of [
      ['local-ca', 'web'],
      ['local-ca', 'people'],
      ['other-ca', 'db'],
    ]) {
      await alice.ask('POST', `/issuers/${issuer}/profiles`, { name });
    }
    await alice.open('/administrators');
    await alice.page.getByRole('button', { name: 'Add administrator' }).click();
    const dialog = alice.page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('bob');
    await dialog.getByLabel('Password').fill(otherPassword);
    const profiles = dialog.getByLabel('Profiles (optional)');
    for (const [role, count] of [
      ['admin', 0],
      ['viewer', 0],
      ['operator', 1],
    ] as const) {
      await dialog.getByLabel('Role').selectOption(role);
      assert.equal(await profiles.count(), count, role);
    }
    await profiles.fill('other-ca/wep');
    opened.expectComplaint(/status of 400.*administrators/);
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await dialog.getByText('no private CA has the profile "other-ca/wep"').first().waitFor();
    await profiles.fill('other-ca/db');
    await dialog.getByRole('button', { name: 'Add', exact: true }).click();
    await alice.page.getByText('Issues only with other-ca/db', { exact: true }).waitFor();
    const bob = await opened.visitor();
    await signInAs(bob, 'bob');
    await bob.open('/new-certificate');
    await bob.page.getByText('You may use only the profile db of other-ca.').waitFor();
    assert.equal(await bob.page.getByLabel('Profile').inputValue(), 'db');
    await bob.page.getByLabel('Domains').fill('db.example.test');
    await bob.page.getByRole('button', { name: 'Create certificate' }).click();
    await bob.page.getByRole('heading', { name: 'db.example.test' }).waitFor();
    const { issuer, profile } = (await bob.ask('GET', '/certificates/db.example.test/settings')) as Record<
      string,
      unknown
    >;
    assert.deepEqual([issuer, profile], ['other-ca', 'db']);
    await bob.open('/api-keys/new');
    await bob.page.getByLabel('Name').fill('ci');
    await bob.page.getByLabel('Certificates by label (optional)').fill('team=web');
    await bob.page.getByLabel('Administration').selectOption('operator');
    assert.equal(await bob.page.getByLabel('Profiles').inputValue(), 'other-ca/db');
    await bob.page.getByRole('button', { name: 'Create API key' }).click();
    await bob.page.getByText('The key is shown only once').waitFor();
    const [key] = (await alice.ask('GET', '/api-keys')) as Record<string, unknown>[];
    assert.deepEqual(key?.profiles, ['other-ca/db']);

    await alice.page.getByRole('button', { name: 'Change role of bob' }).click();
    assert.equal(await profiles.inputValue(), 'other-ca/db');
    await profiles.fill('local-ca/web, local-ca/people');
    await dialog.getByRole('button', { name: 'Change role', exact: true }).click();
    await alice.page.getByText('Issues only with local-ca/web, local-ca/people').waitFor();
    await bob.open('/new-certificate');
    await bob.page
      .getByText('You may use only one of these profiles: web of local-ca, people of local-ca.')
      .waitFor();
  },
);

test(
  'an administrator deletes a certificate after another has approved it, and sees no private key, where the settings say so',
  browser,
  async (t) => {
    const dataDir = tempDir(t);
    const args = ['--second-approval', '--hide-private-keys'];
    const opened = await visit(t, { dataDir, start: () => serve(t, dataDir, { args }) });
    const alice = await opened.alice();
    await alice.createCertificates('www.example.test');
    const password = `${otherPassword}\n`;
    const made = await vault(
      ['admin', 'create', '--name', 'bob', '--password-stdin', '--data-dir', dataDir],
      { input: password },
    );
    assert.equal(made.code, 0, made.stderr);
    await alice.open('/certificates/www.example.test');
    const hidden = 'The settings of this vault hide private keys from the console.';
    assert.equal(await reason(alice, 'private.key'), hidden);
    const remove = async () => {
      await alice.open('/certificates/www.example.test');
      await alice.page.getByRole('button', { name: 'More actions for this certificate' }).click();
      await alice.page.getByRole('button', { name: /^Delete…/ }).click();
      const dialog = alice.page.getByRole('dialog');
      await dialog.getByLabel(/^Type /).fill('www.example.test');
      await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    };
    opened.expectComplaint(/status of 403/);
    await remove();
    await alice.page.getByText('A second administrator has to approve this').waitFor();
    await alice.page.getByRole('dialog').getByRole('link', { name: 'View approvals' }).click();
    const own = 'You requested it yourself; another administrator has to approve it.';
    assert.equal(await reason(alice, 'Approve: Delete the certificate www.example.test'), own);
    const bob = await opened.visitor();
    await signInAs(bob, 'bob');
    await bob.page.getByRole('link', { name: 'Approvals' }).click();
    await bob.page.getByRole('button', { name: 'Approve: Delete the certificate www.example.test' }).click();
    await bob.page.getByRole('dialog').getByRole('button', { name: 'Approve', exact: true }).click();
    await bob.page.getByText('by admin:bob').waitFor();
    await remove();
    await alice.page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
    assert.deepEqual(await alice.ask('GET', '/certificates'), []);
  },
);
