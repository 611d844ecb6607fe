/**
 * What holds for every page of the console, and for every one to come: axe-core finds nothing in either theme, wide or
 * narrow, empty or full; nothing hangs over the edge; the browser has nothing to complain about.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { paleTexts, violations } from '../harness/console-axe.ts';
import { certificateTabs, outsidePaths, pagePatterns, pathOf } from '../harness/console-pages.ts';
import { drawn, type Person, visit } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';

const chromium = needs('chromium');

/** Something of everything that a page can show. */
async function fill({ ask, makeCertificates }: Person): Promise<void> {
  await makeCertificates('www.example.test', 'mail.example.test');
  await ask('POST', '/certificates/www.example.test/renew', {});
  await ask('PATCH', '/certificates/mail.example.test', { disabled: true });
  const key = { scopes: ['certificates:read', 'private_keys:read'], certificates: ['www.example.test'] };
  await ask('POST', '/api-keys', { name: 'web-1', ...key });
  await ask('POST', '/api-keys', { name: 'web-2', ...key });
  await ask('POST', '/api-keys/2/revoke', {});
  await ask('POST', '/administrators', { name: 'bob', password: 'several words in a row' });
  const config = { api_token: 'not-a-real-token-at-all' };
  const settings = { host: 'mail.example.test', from: 'vault@example.test', to: ['ops@example.test'] };
  await ask('POST', '/notification-channels', { name: 'mail', type: 'email', settings, digest_at: '07:00' });
  await ask('POST', '/notification-channels', {
    ...{ name: 'deploy', type: 'webhook', events: ['certificate.issued'] },
    settings: { url: 'http://127.0.0.1:1/hook' },
  });
  await makeCertificates('shop.example.test');
  await ask('POST', '/dns-providers', { name: 'dns', type: 'cloudflare', zones: ['example.test'], config });
}

/** What axe-core has against the page in each theme and at each width, and what hangs over its edge. */
async function faults({ page }: Person, what: string): Promise<string[]> {
  const found: string[] = [];
  const look = async (colorScheme: 'light' | 'dark', width: number, check: typeof violations) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await drawn(page);
    const overhang = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    const all = [...(overhang > 0 ? [`hangs ${overhang} pixels over the edge`] : []), ...(await check(page))];
    found.push(...all.map((text) => `${what}, ${colorScheme}, ${width}: ${text}`));
  };
  await look('light', 1280, violations);
  await look('dark', 1280, paleTexts);
  await look('dark', 360, violations);
  await look('light', 360, paleTexts);
  return found;
}

test('nobody stumbles outside of a session, and on no page of an empty vault', chromium, async (t) => {
  const { alice, visitor } = await visit(t);
  const found: string[] = [];
  const stranger = await visitor({ reducedMotion: 'reduce' });
  for (const path of outsidePaths()) {
    await stranger.open(path);
    found.push(...(await faults(stranger, path)));
  }
  const person = await alice({ reducedMotion: 'reduce' });
  for (const path of pagePatterns().filter((pattern) => !pattern.includes(':'))) {
    await person.move(path);
    found.push(...(await faults(person, path)));
  }
  assert.deepEqual(found, []);
});

test('nobody stumbles on any page that has something to show', chromium, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const person = await alice({ reducedMotion: 'reduce' });
  await fill(person);
  const certificate = '/certificates/www.example.test';
  const paths = [
    ...pagePatterns().map((pattern) => pathOf(pattern, { name: 'www.example.test', id: '1' })),
    ...certificateTabs().map((tab) => `${certificate}?tab=${tab}`),
    '/nothing/here',
    '/certificates/gone.example.test',
  ];
  expectComplaint(/status of 404/);
  const found: string[] = [];
  for (const path of paths) {
    await person.move(path);
    found.push(...(await faults(person, path)));
  }
  assert.deepEqual(found, []);
});

test('every page is reached by its address alone', chromium, async (t) => {
  const { alice } = await visit(t);
  const person = await alice();
  await fill(person);
  for (const pattern of pagePatterns()) {
    await person.open(pathOf(pattern, { name: 'www.example.test', id: '1' }));
    assert.notEqual(await person.page.locator('h1').textContent(), 'Nothing here', pattern);
  }
});

const dialogs = [
  { path: '/issuers', button: 'Add an ACME CA' },
  { path: '/dns-providers', button: 'Add a DNS provider', choose: 'rfc2136' },
  { path: '/dns-providers', button: 'Test dns' },
  { path: '/administrators', button: 'Add an administrator' },
  { path: '/administrators', button: 'Remove bob' },
  { path: '/api-keys', menu: 'Actions for web-1', button: 'Revoke' },
  { path: '/certificates/www.example.test', menu: /^More/, button: 'Change…' },
  { path: '/certificates/www.example.test', menu: /^More/, button: 'Delete…' },
] as const;

test('nobody stumbles over a menu or a dialog', chromium, async (t) => {
  const { alice } = await visit(t);
  const person = await alice({ reducedMotion: 'reduce' });
  const { page } = person;
  await fill(person);
  const found: string[] = [];
  for (const { path, button, ...more } of dialogs) {
    await page.emulateMedia({ colorScheme: 'light' });
    await page.setViewportSize({ width: 1280, height: 800 });
    await person.move(path);
    if ('menu' in more) {
      await page.getByRole('button', { name: more.menu }).click();
      found.push(...(await violations(page)));
    }
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('dialog').waitFor();
    if ('choose' in more) await page.getByLabel('Type').selectOption(more.choose);
    found.push(...(await faults(person, button)));
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
  assert.deepEqual(found, []);
});
