/** Passkeys, with Chromium's virtual authenticator, and authenticator apps in the browser. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { violations } from '../harness/console/axe.ts';
import { fillSetup, type Person, setupLink, visit } from '../harness/console/visit.ts';
import { appOf } from '../harness/http/second-factors.ts';
import { goodPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

async function opened(t: TestContext, more: readonly string[] = []) {
  const dataDir = tempDir(t);
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const args = ['--public-url', url, ...more];
  return visit(t, {
    dataDir,
    start: () => serve(t, dataDir, { args, listen: `127.0.0.1:${port}` }),
    url: () => url,
  });
}

/** An authenticator in the device, whose user is verified. */
async function withAuthenticator({ context, page }: Person) {
  const session = await context.newCDPSession(page);
  await session.send('WebAuthn.enable');
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  });
  return { session, authenticatorId };
}

async function signOut({ page }: Person): Promise<void> {
  await page.getByRole('button', { name: 'alice: sessions, password, sign out' }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
}

async function typePassword({ page }: Person): Promise<void> {
  await page.getByLabel('Name').fill('alice');
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
}

/** Goes through the dialog by keyboard, and returns the code that was used. */
async function setUpApp({ page }: Person): Promise<string> {
  await page.getByRole('button', { name: 'Set up authenticator app' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Your password').fill(goodPassword);
  await page.keyboard.press('Enter');
  await dialog.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor();
  assert.deepEqual(await violations(page), []);
  const secret = (await dialog.getByRole('region', { name: 'Secret' }).innerText()).replaceAll(/\s/g, '');
  const code = appOf(Date.now, secret)();
  await dialog.getByLabel('Code', { exact: true }).fill(code);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Your recovery codes' }).waitFor();
  return code;
}

test('a person adds a passkey, signs in with it without a name, and removes it', browser, async (t) => {
  const { alice: arrive } = await opened(t);
  const alice = await arrive();
  const { page, open } = alice;
  const { session, authenticatorId } = await withAuthenticator(alice);
  await open('/account/sign-in-methods');
  await page.getByRole('button', { name: 'Add passkey' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('Laptop');
  await dialog.getByLabel('Your password').fill(goodPassword);
  await page.keyboard.press('Enter');
  await page.getByRole('rowheader', { name: 'Laptop' }).waitFor();
  assert.deepEqual(await violations(page), []);
  const { credentials } = await session.send('WebAuthn.getCredentials', { authenticatorId });
  assert.deepEqual(
    credentials.map(({ isResidentCredential, rpId }) => [isResidentCredential, rpId]),
    [[true, 'localhost']],
  );
  await alice.settled();
  await signOut(alice);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).press('Enter');
  await page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
  await alice.settled();
  await signOut(alice);
  await typePassword(alice);
  await page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click();
  await page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
  await open('/account/sign-in-methods');
  await page.getByRole('button', { name: 'Rename Laptop' }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('Desk');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Remove Desk' }).click();
  await page.getByRole('dialog').getByLabel('Your password').fill(goodPassword);
  await page.keyboard.press('Enter');
  await page.getByText('No passkeys yet').waitFor();
});

test('a person must set up an authenticator app, and signs in with its code', browser, async (t) => {
  const vault = await opened(t, ['--require-second-factor']);
  const alice = await vault.visitor();
  const { page } = alice;
  await page.goto(await setupLink(vault));
  await fillSetup(page, 'alice');
  await page.getByRole('heading', { name: 'Set up a second factor' }).waitFor();
  assert.deepEqual(await violations(page), []);
  assert.equal(await page.getByRole('navigation').count(), 0);
  const code = await setUpApp(alice);
  const codes = (await page.getByRole('region', { name: 'Recovery codes' }).innerText()).trim().split('\n');
  assert.equal(codes.length, 10);
  await page.getByRole('button', { name: 'I have saved the codes' }).press('Enter');
  await page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
  await alice.settled();
  await signOut(alice);
  await typePassword(alice);
  const field = page.getByLabel('Code');
  await page.locator('input[name=code]:focus').waitFor();
  await field.fill(code);
  vault.expectComplaint(/status of 401/);
  await page.keyboard.press('Enter');
  await page.getByText('Wrong code, or a code that was used before.').waitFor();
  await field.fill(codes[0] ?? '');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Certificates', exact: true }).waitFor();
  await alice.open('/account/sign-in-methods');
  await page.getByText('9 codes are left.').waitFor();
  await page.getByText('so your last one stays').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Remove app' }).count(), 0);
});
