/** Enrollments in the console: created and shown once, with their API keys, revoked and deleted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Person, signIn, type Visit, visit } from '../harness/console/visit.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

/** Exchanges the token for an API key of this host, as the client installer does. */
async function exchange({ url }: Pick<Visit, 'url'>, token: string, host: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/enrollments/exchange`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ host }),
  });
  const { key } = (await response.json()) as { readonly key: string };
  assert.equal(response.status, 201, host);
  return key;
}

/** Whether the vault accepts the key. */
async function works({ url }: Pick<Visit, 'url'>, key: string): Promise<boolean> {
  const headers = { Authorization: `Bearer ${key}` };
  return (await fetch(`${url}/api/v1/certificates/shop`, { headers })).status === 200;
}

/** An enrollment for any certificate, through the API. */
async function enrollment({ ask }: Person, wanted: object): Promise<string> {
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const body = { certificates: ['*'], expires_at, ...wanted };
  return ((await ask('POST', '/enrollments', body)) as { readonly token: string }).token;
}

const state = ({ page }: Person) => page.locator('.page-title .badge').innerText();

test(
  'an enrollment is created in the empty tab, its token is shown once with its commands, and its keys appear without a reload',
  browser,
  async (t) => {
    const whole = await visit(t);
    const person = await whole.alice({ reducedMotion: 'reduce' });
    const { page, ask, createCertificates, open } = person;
    await createCertificates('shop');
    await open('/api-keys');
    await page.getByRole('tab', { name: 'Enrollments' }).click();
    await page.getByRole('heading', { name: 'No enrollments yet' }).waitFor();
    await page.getByRole('link', { name: 'Create enrollment' }).click();
    await page.getByLabel('Expires', { exact: true }).fill('');
    await page.getByLabel('Uses').fill('0');
    whole.expectComplaint(/status of 400/);
    const create = page.getByRole('button', { name: 'Create enrollment' });
    await create.click();
    const errors = page.locator('.field-error');
    await errors.first().waitFor();
    assert.equal(await errors.count(), 3, 'of the uses, the expiry and the certificates');
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 16);
    await page.getByLabel('Expires', { exact: true }).fill(tomorrow);
    await page.getByLabel('Name (optional)').fill('rack-4');
    await page.getByLabel('Uses').fill('20');
    await page.getByRole('checkbox', { name: 'shop' }).check();
    await page.getByLabel('Networks (optional)').fill('127.0.0.0/8');
    await page.getByLabel('Bind each key to the address of its machine').check();
    await page.getByLabel('Labels (optional)', { exact: true }).fill('team=web');
    await create.click();
    await page.getByText('The token is shown only once').waitFor();
    const token = (await page.getByLabel('Enrollment token').innerText()).trim();
    assert.match(token, /^ve_/);
    assert((await page.getByLabel('Command that stores the token').innerText()).includes(token));
    const command = await page.getByLabel('Installer command').innerText();
    assert(command.includes('--enroll /root/vault-enrollment-token') && !command.includes(token), command);
    const cleanup = page.getByText(
      'Then delete /root/vault-enrollment-token. The machine no longer needs it.',
    );
    assert.equal(await cleanup.count(), 1);
    const [made] = (await ask('GET', '/enrollments')) as Record<string, unknown>[];
    assert.partialDeepStrictEqual(made, {
      ...{ name: 'rack-4', certificates: ['shop'], max_uses: 20, bind_address: true, labels: ['team=web'] },
      ...{ allowed_networks: ['127.0.0.0/8'], scopes: ['certificates:read', 'private_keys:read'] },
    });
    await page.getByRole('link', { name: 'Done' }).click();
    await page.getByRole('link', { name: 'rack-4' }).click();
    await page.getByText('No machine has used the token yet.').waitFor();
    await cleanup.waitFor();
    assert(!(await page.content()).includes(token), 'the token is shown once');
    await exchange(whole, token, 'web-1.example.test');
    await page.getByRole('link', { name: 'web-1.example.test' }).click();
    await page.getByRole('heading', { level: 1, name: 'web-1.example.test' }).waitFor();
    const fact = (name: string) => page.locator(`dt:text-is(${JSON.stringify(name)}) + dd`).innerText();
    assert.deepEqual([await fact('Labels'), await fact('Networks')], ['team=web', '127.0.0.1']);
    await page.getByRole('link', { name: 'rack-4' }).click();
    await page.getByText('1 of 20').waitFor();
    await open('/api-keys');
    await page.getByText('enrolled with rack-4').waitFor();
  },
);

test(
  'an enrollment is revoked alone, then with its keys, and deleted; the keys keep its number',
  browser,
  async (t) => {
    const whole = await visit(t);
    const person = await whole.alice({ reducedMotion: 'reduce' });
    const { page, ask, createCertificates, open } = person;
    await createCertificates('shop');
    const key = await exchange(whole, await enrollment(person, { name: 'images', uses: 2 }), 'web-1');
    await enrollment(person, { name: 'unused' });
    const choose = async (name: string, action: string) => {
      await page.getByRole('button', { name: `Actions for ${name}` }).click();
      await page.getByRole('button', { name: action, exact: true }).click();
    };
    const dialog = page.getByRole('dialog');
    const confirm = async (action: string) => {
      await dialog.getByRole('button', { name: action }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await enrollment(person, { name: 'lost' });
    await open('/api-keys/enrollments/3');
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await ask('POST', '/enrollments/3/revoke', {});
    // Starts a live update.
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    await page.locator('.page-title').getByText('revoked', { exact: true }).waitFor();
    assert.equal(await dialog.getByRole('heading').innerText(), 'Revoke lost?', 'as it was opened');
    await confirm('Revoke');
    await open('/api-keys?tab=enrollments');
    await choose('lost', 'Delete');
    await confirm('Delete');
    await choose('unused', 'Revoke');
    assert.equal(await dialog.getByRole('checkbox').count(), 0, 'it has no keys');
    await confirm('Revoke');
    await choose('images', 'Revoke');
    await dialog.getByText('Machines that have an API key keep it.').waitFor();
    await confirm('Revoke');
    assert.equal(await works(whole, key), true);
    await choose('images', 'Revoke API keys');
    await dialog.getByRole('heading', { name: 'Revoke the API keys of images?' }).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    // Without live updates, which would load the keys too.
    await page.evaluate('EventSource = class { addEventListener() {} close() {} }');
    await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
    const keysOfIt = /\/api-keys\?enrollment=1$/;
    await page.route(keysOfIt, (route) => route.fulfill({ status: 500, json: {} }));
    whole.expectComplaint(/status of 500/);
    await page.getByRole('link', { name: 'images' }).click();
    const retry = page.getByRole('button', { name: 'Retry' });
    await retry.waitFor();
    await page.unroute(keysOfIt);
    await retry.click();
    await page.getByRole('link', { name: 'web-1' }).waitFor();
    assert.equal(await retry.count(), 0);
    await open('/api-keys/enrollments/1');
    await page.getByRole('heading', { level: 1, name: 'images' }).waitFor();
    assert.equal(await state(person), 'revoked');
    assert.equal(await page.getByLabel('Installer command').count(), 0);
    await page.getByRole('button', { name: 'Revoke API keys' }).click();
    await confirm('Revoke');
    await page.getByRole('cell', { name: 'revoked' }).waitFor();
    assert.equal(await works(whole, key), false);
    assert.equal(await page.getByRole('button', { name: 'Revoke API keys' }).count(), 0);
    // A live update arrives when the enrollment is gone, before the response to its deletion.
    await page.clock.install();
    await page.route('**/api/v1/enrollments/1', async (route) => {
      if (route.request().method() !== 'DELETE') return route.fallback();
      const response = await route.fetch();
      await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
      // The update waits for others, and then for as long as the last one took.
      for (const _ of ['others', 'the last']) await page.clock.fastForward('01:00');
      return route.fulfill({ response });
    });
    await page.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('link', { name: 'unused' }).waitFor();
    assert.deepEqual(
      ((await ask('GET', '/enrollments')) as { name: string }[]).map(({ name }) => name),
      ['unused'],
    );
    await page.getByRole('tab', { name: 'Keys', exact: true }).click();
    await page.getByText('enrolled with enrollment 1').waitFor();
    await page.getByRole('link', { name: 'web-1' }).click();
    await page.locator('dt:text-is("Enrollment") + dd').getByText('enrollment 1', { exact: true }).waitFor();
  },
);

test('an API key has its labels, reach and profiles on its page', browser, async (t) => {
  const whole = await visit(t);
  const { page, ask, open } = await whole.alice();
  await ask('POST', '/issuers/local-ca/profiles', { name: 'web' });
  const rights = { role: 'operator', reach: ['team=web'], profiles: ['local-ca/web'], labels: ['team=web'] };
  await ask('POST', '/api-keys', {
    name: 'ci',
    scopes: ['certificates:read'],
    certificates: ['*'],
    ...rights,
  });
  await open('/api-keys/1');
  for (const [name, value] of [
    ...[['Role', 'operator'] as const, ['Reach', 'team=web'] as const],
    ...[['Profiles', 'local-ca/web'] as const, ['Labels', 'team=web'] as const],
  ]) {
    assert.equal(await page.locator(`dt:text-is("${name}") + dd`).innerText(), value);
  }
  assert.equal(await page.locator('dt:text-is("Enrollment")').count(), 0);
});

test('a viewer sees an enrollment, and may not create, revoke or delete one', browser, async (t) => {
  const whole = await visit(t);
  const alice = await whole.alice();
  await enrollment(alice, { name: 'active' });
  await enrollment(alice, { name: 'ended' });
  await alice.ask('POST', '/enrollments/2/revoke', {});
  await alice.ask('POST', '/administrators', { name: 'bob', password: otherPassword, role: 'viewer' });
  const { page, open } = await whole.visitor();
  await open('/sign-in');
  await signIn(page, 'bob', otherPassword);
  for (const [path, name, role] of [
    ['/api-keys?tab=enrollments', 'Create enrollment', 'operator'],
    ['/api-keys/enrollments/1', 'Revoke', 'operator'],
    ['/api-keys/enrollments/2', 'Delete', 'admin'],
  ] as const) {
    await open(path);
    const button = page.getByRole('button', { name, exact: true });
    await button.click({ force: true });
    assert.equal(await button.getAttribute('title'), `Requires the role ${role}; yours is viewer.`);
    assert.equal(await page.getByRole('dialog').count(), 0, name);
  }
});
