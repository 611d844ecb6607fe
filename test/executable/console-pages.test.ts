/**
 * Checks on every page of the console: axe-core finds no violations in either theme, on wide and narrow screens, empty
 * or full; nothing overflows; the browser reports no errors.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { contrastViolations, violations } from '../harness/console/axe.ts';
import { overflowOf } from '../harness/console/overflow.ts';
import { certificateTabs, outsidePaths, pagePatterns, pathOf } from '../harness/console/pages.ts';
import { reporter } from '../harness/console/reports.ts';
import { type Person, rendered, visit } from '../harness/console/visit.ts';
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const chromium = needs('chromium');

/** A vault that may scan loopback. */
function visitScanning(t: TestContext) {
  const dataDir = tempDir(t);
  const start = () => serve(t, dataDir, { args: ['--endpoint-allow', loopbackSetting] });
  return visit(t, { dataDir, start });
}

/** Creates at least one object of every kind that a page can show. */
async function fill(person: Person): Promise<void> {
  const { ask, createCertificates } = person;
  await createCertificates('www.example.test', 'mail.example.test');
  await ask('POST', '/certificates/www.example.test/renew', {});
  await ask('PATCH', '/certificates/mail.example.test', { disabled: true });
  await createCertificates('old.example.test');
  await ask('DELETE', '/certificates/old.example.test');
  const key = { scopes: ['certificates:read', 'private_keys:read'], certificates: ['www.example.test'] };
  await ask('POST', '/api-keys', { name: 'web-1', ...key });
  await ask('POST', '/api-keys', { name: 'web-2', ...key });
  await ask('POST', '/api-keys/2/revoke', {});
  await ask('POST', '/acme-clients', { name: 'caddy', domains: ['*.example.test'], validation: ['dns-01'] });
  await ask('POST', '/administrators', { name: 'bob', password: 'several words in a row' });
  const config = { api_token: 'not-a-real-token-at-all' };
  const settings = { host: 'mail.example.test', from: 'vault@example.test', to: ['ops@example.test'] };
  await ask('POST', '/notification-channels', { name: 'mail', type: 'email', settings, digest_at: '07:00' });
  await ask('POST', '/notification-channels', {
    ...{ name: 'deploy', type: 'webhook', events: ['certificate.issued'] },
    settings: { url: 'http://127.0.0.1:1/hook' },
  });
  await createCertificates('shop.example.test');
  await ask('POST', '/dns-providers', { name: 'dns', type: 'cloudflare', zones: ['example.test'], config });
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  const enrollment = { certificates: ['www.example.test'], expires_at, allowed_networks: ['192.0.2.0/24'] };
  for (const name of ['rack-4', 'rack-5']) await ask('POST', '/enrollments', { name, ...enrollment });
  await ask('POST', '/enrollments/2/revoke', {});
  await ask('POST', '/replacements', { certificate: 'shop.example.test', deadline: '30d' });
  const watched = { certificate: 'www.example.test', server_name: 'mail.department.example.test' };
  await ask('POST', '/endpoints', { address: '127.0.0.1:1', ...watched, starttls: 'smtp' });
  for (const host of ['a', 'b', 'c']) {
    await ask('POST', '/endpoints', { address: `${host.repeat(60)}.example.test:10443` });
  }
  // Nothing listens there.
  await ask('POST', '/endpoint-scans', { networks: ['127.0.0.1'], ports: [1] });
  const place = { url: 'http://127.0.0.1:1', secret: `whsec_${Buffer.alloc(32).toString('base64')}` };
  const certificates = ['www.example.test', 'mail.example.test'];
  const target = { name: 'www.example.test', type: 'webhook', settings: place, certificates };
  await ask('POST', '/deploy-targets', target);
  await ask('POST', '/deploy-targets', { ...target, name: 'a'.repeat(64), certificates: [] });
  const report = await reporter(person, 'clients');
  await report('www.example.test', 'web1', { destination: '/folder'.repeat(60) });
  const domains = ['imap', 'smtp', 'webmail', 'autoconfig'].map((name) => `${name}.department.example.test`);
  await ask('POST', '/certificates', { name: 'all-mail', domains, issuer: 'local-ca' });
  const output = 'nginx: [emerg] cannot load certificate "/etc/nginx/tls/fullchain.crt": no such file'.repeat(
    3,
  );
  await report('www.example.test', 'a'.repeat(253), { id: 'long', reload: { result: 'failed', output } });
}

const parameters = { name: 'www.example.test', id: '1', host: 'web1' };

/** The axe-core violations of the page in each theme and at each width, and its horizontal overflow. */
async function faults({ page }: Person, what: string): Promise<string[]> {
  const found: string[] = [];
  const check = async (colorScheme: 'light' | 'dark', width: number, find: typeof violations) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await rendered(page);
    const overflow = await overflowOf(page);
    const all = [...(overflow > 0 ? [`overflows by ${overflow} pixels`] : []), ...(await find(page))];
    found.push(...all.map((text) => `${what}, ${colorScheme}, ${width}: ${text}`));
  };
  await check('light', 1280, violations);
  await check('dark', 1280, contrastViolations);
  await check('dark', 360, violations);
  await check('light', 360, contrastViolations);
  return found;
}

test('pages without a session and pages of an empty vault are accessible', chromium, async (t) => {
  const { alice, visitor } = await visit(t);
  const found: string[] = [];
  const anonymous = await visitor({ reducedMotion: 'reduce' });
  for (const path of outsidePaths()) {
    await anonymous.open(path);
    found.push(...(await faults(anonymous, path)));
  }
  const person = await alice({ reducedMotion: 'reduce' });
  const tabs = ['/fleet?tab=endpoints', '/fleet?tab=scans', '/api-keys?tab=enrollments'];
  for (const path of [...pagePatterns().filter((pattern) => !pattern.includes(':')), ...tabs]) {
    await person.move(path);
    found.push(...(await faults(person, path)));
  }
  assert.deepEqual(found, []);
});

test('pages with content are accessible', chromium, async (t) => {
  const { alice, expectComplaint } = await visitScanning(t);
  const person = await alice({ reducedMotion: 'reduce' });
  await fill(person);
  const certificate = '/certificates/www.example.test';
  const paths = [
    ...pagePatterns().map((pattern) => pathOf(pattern, parameters)),
    ...certificateTabs().map((tab) => `${certificate}?tab=${tab}`),
    '/nothing/here',
    '/certificates/gone.example.test',
    '/fleet/gone',
    '/api-keys/3',
    '/api-keys/999',
    '/api-keys?tab=enrollments',
    '/api-keys/enrollments/2',
    '/api-keys/enrollments/999',
    '/fleet?tab=endpoints',
    '/fleet?tab=scans',
    '/fleet/scans/999',
    '/fleet/endpoints/2',
    '/fleet/endpoints/999',
    `/fleet/${'a'.repeat(253)}`,
    `/deploy-targets/${'a'.repeat(64)}`,
    '/deploy-targets/gone',
  ];
  expectComplaint(/status of 404/);
  const found: string[] = [];
  for (const path of paths) {
    await person.move(path);
    found.push(...(await faults(person, path)));
  }
  assert.deepEqual(found, []);
});

test('every page opens from its URL', chromium, async (t) => {
  const { alice } = await visitScanning(t);
  const person = await alice();
  await fill(person);
  for (const pattern of pagePatterns()) {
    await person.open(pathOf(pattern, parameters));
    assert.notEqual(await person.page.locator('h1').textContent(), 'Page not found', pattern);
  }
});

test('a page without its script, as after an upgrade, opens after a reload', chromium, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, context, open } = await alice();
  expectComplaint(/status of 404/);
  const script = '**/console/later-pages-*.js';
  await context.route(script, (route) => route.fulfill({ status: 404, body: '' }));
  await open('/certificates');
  await page.getByRole('navigation').getByRole('link', { name: 'Renewals' }).click();
  await page.getByRole('heading', { level: 1, name: 'Page not loaded' }).waitFor();
  await context.unroute(script);
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('heading', { level: 1, name: 'Renewals' }).waitFor();
});

const dialogs = [
  { path: '/issuers', button: 'Add ACME CA' },
  { path: '/issuers', button: 'Add private CA' },
  { path: '/issuers', menu: 'Actions for local-ca', button: 'Edit' },
  { path: '/dns-providers', button: 'Add DNS provider', choose: 'rfc2136' },
  { path: '/dns-providers', button: 'Test dns' },
  { path: '/deleted-certificates', button: 'Restore old.example.test' },
  { path: '/administrators', button: 'Add administrator' },
  { path: '/administrators', button: 'Remove bob' },
  { path: '/api-keys', menu: 'Actions for web-1', button: 'Revoke' },
  { path: '/api-keys?tab=enrollments', menu: 'Actions for rack-4', button: 'Revoke' },
  { path: '/api-keys/enrollments/2', button: 'Delete' },
  { path: '/fleet?tab=endpoints', button: 'Add endpoint' },
  { path: '/fleet?tab=scans', button: 'Add scan' },
  { path: '/fleet/scans/1', button: 'Delete…' },
  { path: '/fleet/endpoints/1', menu: /^More/, button: 'Edit…' },
  { path: '/fleet/endpoints/1', menu: /^More/, button: 'Remove…' },
  { path: '/deploy-targets', button: 'Add deploy target', choose: 'ssh' },
  { path: '/deploy-targets', button: 'Add deploy target', choose: 'exec' },
  { path: '/deploy-targets/www.example.test', button: 'Select certificates' },
  { path: '/deploy-targets/www.example.test', button: 'Install now: mail.example.test' },
  { path: '/deploy-targets/www.example.test', menu: /^More/, button: 'Replace settings…' },
  { path: '/deploy-targets/www.example.test', menu: /^More/, button: 'Remove…' },
  { path: '/certificates/www.example.test', menu: /^More/, button: 'Edit…' },
  { path: '/certificates/www.example.test', menu: /^More/, button: 'Delete…' },
] as const;

test('menus and dialogs are accessible', chromium, async (t) => {
  const { alice, excuse } = await visitScanning(t);
  const person = await alice({ reducedMotion: 'reduce' });
  const { page } = person;
  await fill(person);
  // The installation on a target, which fails.
  excuse(/status of 502/);
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
