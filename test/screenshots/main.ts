/**
 * Pictures of every page of the console, in docs/screenshots: light, dark and narrow. `npm run screenshots` makes all
 * of them, and with names only those: `npm run screenshots certificates about`.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { pagePatterns, pathOf } from '../harness/console/pages.ts';
import { startWatch } from '../harness/console/watch.ts';
import { findProgram } from '../harness/processes/missing-program.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { age, fill, person } from './content.ts';

/** The moment of all pictures. */
const moment = Date.UTC(2026, 9, 12, 10, 24);

const folder = join(import.meta.dirname, '..', '..', 'docs', 'screenshots');

const looks = [
  { look: 'light', colorScheme: 'light', viewport: { width: 1200, height: 800 } },
  { look: 'dark', colorScheme: 'dark', viewport: { width: 1200, height: 800 } },
  { look: 'narrow', colorScheme: 'light', viewport: { width: 375, height: 780 } },
] as const;

type Shot = { readonly name: string; readonly path: string };

/** Every page of the console's own table, and some that are more than one. */
function shots(): Shot[] {
  const parameters = { name: 'www.example.com', id: '1', host: 'web-2' };
  const pages = pagePatterns()
    .filter((pattern) => pattern !== '/')
    .map((pattern) => ({
      name: nameOf(pattern),
      path: pathOf(pattern, pattern === '/deploy-targets/:name' ? { name: 'balancer' } : parameters),
    }));
  const failing = { name: 'certificate-failing', path: '/certificates/status.example.com' };
  const renewals = { name: 'certificate-renewals', path: '/certificates/www.example.com?tab=renewals' };
  const deployments = {
    name: 'certificate-deployments',
    path: '/certificates/www.example.com?tab=deployments',
  };
  const endpoints = { name: 'endpoints', path: '/fleet?tab=endpoints' };
  const enrollments = { name: 'enrollments', path: '/api-keys?tab=enrollments' };
  return [...pages, failing, renewals, deployments, endpoints, enrollments];
}

/** Pages of one thing, whose names would be those of their lists. */
const oneOf: Readonly<Record<string, string>> = {
  ...{ '/certificates/:name': 'certificate', '/api-keys/:id': 'api-key', '/fleet/:host': 'host' },
  ...{ '/deploy-targets/:name': 'deploy-target', '/fleet/endpoints/:id': 'endpoint' },
  ...{ '/api-keys/enrollments/:id': 'enrollment' },
};

/** `/certificates/:name` → `certificate`, `/api-keys/:id/install` → `api-keys-install`. */
function nameOf(pattern: string): string {
  const one = oneOf[pattern];
  if (one !== undefined) return one;
  return pattern
    .split('/')
    .filter((part) => part !== '' && !part.startsWith(':'))
    .join('-');
}

/** All times of the answers, as if now were the moment. */
async function freeze(context: BrowserContext, now: number): Promise<void> {
  await context.clock.setFixedTime(moment);
  await context.route('**/api/v1/**', async (route) => {
    if (route.request().url().endsWith('/events')) return route.abort();
    const response = await route.fetch();
    const moved = (await response.text()).replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (at) =>
      new Date(Date.parse(at) - now + moment).toISOString(),
    );
    await route.fulfill({ response, body: moved });
  });
}

async function settle(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await page.locator('.skeleton, main[aria-busy]').first().waitFor({ state: 'detached' });
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
}

async function signIn(page: Page): Promise<void> {
  await page.goto('/sign-in');
  await page.getByLabel('Name').fill(person.name);
  await page.getByLabel('Password').fill(person.password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
}

const ends: (() => unknown)[] = [];
const t = { after: (end: () => unknown) => ends.push(end) };
const dataDir = mkdtempSync(join(tmpdir(), 'vault-screenshots-'));
const now = Date.now();
const chosen = process.argv.slice(2);
const wanted = shots().filter(({ name }) => chosen.length === 0 || chosen.includes(name));
try {
  await fill(dataDir);
  // Nothing may reach a CA, should a renewal begin all the same.
  const nowhere = { HTTP_PROXY: 'http://127.0.0.1:9', HTTPS_PROXY: 'http://127.0.0.1:9', NO_PROXY: '' };
  const { url } = await serve(t as never, dataDir, { environment: nowhere });
  age(dataDir, now);
  const browser = await chromium.launch({
    executablePath: findProgram('chromium') ?? 'chromium',
    args: ['--no-sandbox', '--font-render-hinting=none'],
  });
  ends.unshift(() => browser.close());
  const watch = startWatch(url);
  mkdirSync(folder, { recursive: true });
  for (const { look, ...wishes } of looks) {
    const context = await browser.newContext({
      ...wishes,
      baseURL: url,
      locale: 'en-GB',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
    });
    watch.add(context);
    await freeze(context, now);
    ends.unshift(async () => {
      // A handler that still answers a request of the page needs the context.
      await context.unrouteAll({ behavior: 'wait' });
      await context.close();
    });
    const page = await context.newPage();
    await page.goto('/sign-in');
    await settle(page);
    if (chosen.length === 0) await page.screenshot({ path: join(folder, `sign-in-${look}.png`) });
    await signIn(page);
    for (const { name, path } of wanted) {
      await page.goto(path);
      await settle(page);
      const clip = { x: 0, y: 0, width: wishes.viewport.width, height: 1600 };
      await page.screenshot({
        path: join(folder, `${name}-${look}.png`),
        fullPage: true,
        clip,
        caret: 'hide',
      });
    }
    await ends.shift()?.();
  }
  const complaints = watch.complaints().filter((text) => !text.includes('/api/v1/events'));
  if (complaints.length > 0) throw new Error(`the browser complains:\n${complaints.join('\n')}`);
  console.log(
    `${(wanted.length + (chosen.length === 0 ? 1 : 0)) * looks.length} pictures in docs/screenshots`,
  );
} finally {
  for (const end of ends) await end();
  rmSync(dataDir, { recursive: true, force: true });
}
