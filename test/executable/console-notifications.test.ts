/**
 * Notifications in the browser: adding, testing, editing and removing a channel, also by keyboard, and the delivery
 * log.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../harness/console/visit.ts';
import { isSignedWith, status, webhookReceiver } from '../harness/http/webhook-receiver.ts';
import { fakeChatApi } from '../harness/notifications/fake-chat-api.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

test(
  'a webhook is added with a secret that is shown once, tested, edited and removed',
  browser,
  async (t) => {
    const { alice, expectComplaint } = await visit(t);
    const receiver = await webhookReceiver(t);
    const { page, open, createCertificates } = await alice();
    await open('/notifications');
    await page.getByRole('heading', { name: 'No notification channels yet' }).waitFor();
    await page.getByRole('button', { name: 'Add channel' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Type').selectOption('webhook');
    await dialog.getByLabel('Name', { exact: true }).fill('ops');
    expectComplaint(/status of 400/);
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.locator(':focus').and(dialog.getByLabel('URL')).waitFor();
    await dialog.getByText('Correct the marked field.').waitFor();
    await dialog.getByLabel('URL').fill(receiver.url);
    await dialog.getByLabel('A new version is issued').check();
    await dialog.getByLabel('Daily digest').fill('07:00');
    await dialog.getByRole('button', { name: 'Add' }).click();
    const secret = await page.getByRole('region', { name: 'Signing secret' }).textContent();
    assert.match(secret ?? '', /^whsec_/);
    await page.getByText('daily digest at 07:00 UTC').waitFor();
    assert.equal(await page.getByText('t0ken').count(), 0);

    await page.getByRole('button', { name: 'Test ops' }).click();
    await dialog.getByRole('button', { name: 'Send' }).click();
    await page.getByText('ops accepted the test message').waitFor();
    const [got] = receiver.received;
    assert(got && isSignedWith(secret ?? '', got, Date.now()));
    receiver.answers.push(status(500));
    await dialog.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/responded with 500/).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.locator('.entry-error', { hasText: 'responded with 500' }).waitFor();
    assert.equal(await page.locator('.entry').count(), 2);
    receiver.answers.push(status(500));
    await createCertificates('www.example.test');
    await page.getByRole('table').getByText('failing').waitFor();

    await page.getByRole('button', { name: 'Edit ops' }).click();
    await dialog.getByLabel('A new version is issued').uncheck();
    await dialog.getByLabel('Certificates').fill('shop*\nweb*');
    await dialog.getByLabel('Enabled').uncheck();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await page.getByText('only for shop*, web*').waitFor();
    await page.getByRole('table').getByText('disabled').waitFor();
    await page.getByRole('button', { name: 'Remove ops' }).click();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('heading', { name: 'No notification channels yet' }).waitFor();
  },
);

test(
  'each chat and paging service can be selected and shows its settings; credentials are hidden',
  browser,
  async (t) => {
    const { alice } = await visit(t);
    const api = await fakeChatApi(t);
    const { page, open } = await alice();
    await open('/notifications');
    await page.getByRole('button', { name: 'Add channel' }).click();
    const dialog = page.getByRole('dialog');
    const settings: [type: string, labels: string[]][] = [
      ...(['slack', 'teams', 'discord'] as const).map((type): [string, string[]] => [type, ['URL']]),
      ['ntfy', ['Topic', 'Token (optional)', 'URL (optional)']],
      ['gotify', ['URL', 'Token']],
      ['pagerduty', ['Routing key', 'URL (optional)']],
      ['opsgenie', ['API key', 'URL (optional)']],
      ['telegram', ['Token', 'Chat', 'Thread (optional)', 'URL (optional)']],
    ];
    for (const [type, labels] of settings) {
      await dialog.getByLabel('Type').selectOption(type);
      for (const label of labels) await dialog.getByLabel(label, { exact: true }).waitFor();
    }
    const token = dialog.getByLabel('Token', { exact: true });
    assert.equal(await token.getAttribute('type'), 'password');
    await token.fill('1:s3cret');
    await dialog.getByLabel('Chat', { exact: true }).fill('-1001');
    await dialog.getByLabel('URL (optional)', { exact: true }).fill(api.origin);
    await dialog.getByRole('button', { name: 'Add' }).click();
    await page.getByRole('button', { name: 'Test telegram' }).click();
    await dialog.getByRole('button', { name: 'Send' }).click();
    await page.getByText('telegram accepted the test message').waitFor();
    assert.equal(api.calls[0]?.call, 'POST /bot1:s3cret/sendMessage');
    assert.equal(await page.getByText('s3cret').count(), 0);
  },
);

test('an email channel is added by keyboard alone; a program cannot be added here', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  await command('notification', 'add', 'exec', '--channel', 'pager', '--command', '/bin/true');
  await open('/notifications');
  const { keyboard } = page;
  await page.getByRole('button', { name: 'Add channel' }).focus();
  await keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Type').selectOption('exec');
  await dialog.getByText('add them on the vault’s host').waitFor();
  assert.ok(await dialog.getByRole('button', { name: 'Add' }).isDisabled());
  await dialog.getByLabel('Type').selectOption('email');
  const type = async (label: string, text: string) => {
    await dialog.getByLabel(label, { exact: true }).focus();
    await keyboard.press('Control+A');
    await keyboard.type(text);
  };
  await type('Name', 'mail');
  await type('Host', 'mail.example.test');
  await type('From', 'vault@example.test');
  await type('To', 'ops@example.test, night@example.test');
  await dialog.getByLabel('Name', { exact: true }).focus();
  await keyboard.press('Enter');
  await page.getByText('ops@example.test night@example.test').waitFor();
  await page.getByText('/bin/true').waitFor();
});
