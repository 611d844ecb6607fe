/** The console as people with the role viewer or operator have it: what they may not do is there, and says why. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Person, type Visit, visit } from '../harness/console/visit.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

async function bobWith(role: string, { visitor, command }: Visit, alice: Person): Promise<Person> {
  await alice.ask('POST', '/administrators', { name: 'bob', password: otherPassword, role });
  assert.match(await command('admin', 'list'), new RegExp(`bob +${role} `));
  const bob = await visitor();
  await bob.open('/sign-in');
  await bob.page.getByLabel('Name').fill('bob');
  await bob.page.getByLabel('Password').fill(otherPassword);
  await bob.page.getByRole('button', { name: 'Sign in' }).click();
  await bob.page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
  return bob;
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
