/**
 * A new vault and the people in front of it, each with a browser of their own: Chromium by playwright-core. What no page
 * of the console may do is watched all the time: errors (the browser puts violations of the CSP there), and requests
 * elsewhere. For one person who is signed in already, console-visit.ts is shorter.
 */
import { readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { findProgram } from './missing-program.ts';
import { tempDir } from './temp-dir.ts';
import { type RunningVault, serve } from './vault-process.ts';

export const password = 'nine green bottles on a wall';

export type People = {
  readonly server: RunningVault;
  readonly url: string;
  /** What went wrong in the pages so far, without what is excused. */
  readonly complaints: () => string[];
  /** Somebody with cookies of their own, and watched. */
  readonly person: (options?: Parameters<Browser['newContext']>[0]) => Promise<BrowserContext>;
  /** Takes the setup link, and gives a page that shows the certificates. */
  readonly setUp: (context: BrowserContext, name?: string) => Promise<Page>;
  /** Refusals that a test asks for: the browser reports each as an error. */
  readonly excuse: (pattern: RegExp) => void;
};

/** A new vault without an administrator, and a browser; both end with the test. */
export async function peopleAtNewVault(t: TestContext): Promise<People> {
  const server = await serve(t, tempDir(t));
  const executablePath = findProgram('chromium') ?? '';
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  t.after(() => browser.close());
  const found: string[] = [];
  const excused: RegExp[] = [];
  const watch = (page: Page) => {
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') found.push(message.text());
    });
    page.on('pageerror', (error) => found.push(String(error)));
    page.on('request', (request) => {
      const asked = request.url();
      if (!asked.startsWith(`${server.url}/`) && !asked.startsWith('data:')) found.push(`asked ${asked}`);
    });
  };
  return {
    server,
    url: server.url,
    complaints: () => found.filter((text) => !excused.some((pattern) => pattern.test(text))),
    excuse: (pattern) => excused.push(pattern),
    person: async (options = {}) => {
      const context = await browser.newContext({ baseURL: server.url, locale: 'en-GB', ...options });
      context.setDefaultTimeout(15_000);
      context.on('page', watch);
      return context;
    },
    setUp: async (context, name = 'alice') => {
      const page = await context.newPage();
      await page.goto(setupLink(server));
      await page.getByLabel('Name').fill(name);
      await page.getByLabel('Password', { exact: true }).fill(password);
      await page.getByLabel('Password, once more').fill(password);
      await page.getByRole('button', { name: 'Set up' }).click();
      await page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
      return page;
    },
  };
}

/** What the server printed for the person at its terminal. */
export function setupLink({ log }: Pick<RunningVault, 'log'>): string {
  const link = /http\S+\/setup#token=\S+/.exec(log())?.[0];
  if (link === undefined) throw new Error(`no setup link was printed: ${log()}`);
  return link;
}

/** Asks the API as whoever is signed in there, as a page of the console would. */
export async function ask(
  { request }: BrowserContext,
  url: string,
  method: 'POST' | 'PATCH' | 'DELETE' | 'GET',
  path: string,
  data?: unknown,
): Promise<unknown> {
  const response = await request.fetch(`${url}/api/v1${path}`, {
    method,
    headers: { Origin: url },
    ...(data !== undefined && { data }),
  });
  if (!response.ok()) throw new Error(`${method} ${path}: ${response.status()} ${await response.text()}`);
  return response.status() === 204 ? undefined : response.json();
}

const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

type Violation = {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly any: readonly { readonly message: string }[] }[];
};

/** What axe-core has against the page as it is now, a line for each place. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations: found } = (await page.evaluate('axe.run()')) as { violations: Violation[] };
  return found.flatMap(({ id, nodes }) =>
    nodes.map(({ html, any }) => `${new URL(page.url()).pathname}: ${id}: ${html} ${any[0]?.message ?? ''}`),
  );
}
