/**
 * The console in the system's Chromium, for a person who is signed in: whatever the browser complains about, and every
 * request to somewhere else, is a failure.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { TestContext } from 'node:test';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { findProgram } from './missing-program.ts';
import { goodPassword } from './sign-in-fixtures.ts';
import { tempDir } from './temp-dir.ts';
import { serve, vault } from './vault-process.ts';

export type ConsoleVault = {
  readonly url: string;
  readonly dataDir: string;
  /** What the browser does before the vault ends: hooks run in the order in which they were made. */
  readonly beforeEnd: (() => unknown)[];
  /** A command of the executable on this vault. Fails with its complaint, returns what it prints. */
  readonly command: (...args: string[]) => Promise<string>;
};

/** A vault with the administrator `alice` and these certificates, as a process that ends with the test. */
export async function consoleVault(
  t: TestContext,
  certificates: readonly string[] = [],
): Promise<ConsoleVault> {
  const dataDir = tempDir(t);
  const command = async (args: readonly string[], input?: string) => {
    const ended = await vault([...args, '--data-dir', dataDir], input === undefined ? {} : { input });
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout.trim();
  };
  await command(['admin', 'create', '--name', 'alice', '--password-stdin'], `${goodPassword}\n`);
  for (const name of certificates) await command(['certificate', 'create', '--name', name, '--domain', name]);
  const beforeEnd: ConsoleVault['beforeEnd'] = [];
  t.after(async () => {
    for (const end of beforeEnd) await end();
  });
  const { url } = await serve(t, dataDir);
  return { url, dataDir, beforeEnd, command: (...args) => command(args) };
}

export type Console = {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Goes to a path, and waits for its heading. */
  readonly open: (path: string) => Promise<void>;
  /** Fails where axe-core finds something in the colours of now. */
  readonly assertAccessible: (what: string) => Promise<void>;
  /** What the browser complained about so far. */
  readonly complaints: string[];
};

/** A browser in which alice has signed in. At the end of the test, it must have had nothing to complain about. */
export async function signedInConsole({
  url,
  beforeEnd,
}: Pick<ConsoleVault, 'url' | 'beforeEnd'>): Promise<Console> {
  const executablePath = findProgram('chromium') ?? '';
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  beforeEnd.push(() => browser.close());
  const context = await browser.newContext({ locale: 'en-GB', reducedMotion: 'reduce' });
  const page = await context.newPage();
  const complaints = complaintsOf(page, url);
  beforeEnd.push(() => assert.deepEqual(complaints, [], 'the browser had complaints'));
  const open = async (path: string) => {
    await page.goto(new URL(path, url).href);
    await page.locator('h1').waitFor();
  };
  await open('/sign-in');
  await page.getByLabel('Name').fill('alice');
  await page.getByLabel('Password').fill(goodPassword);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').waitFor();
  const assertAccessible = async (what: string) => {
    // Not as a script element: the page's own policy forbids it.
    await page.evaluate(axe());
    const violations = await page.evaluate(async () => {
      const { run } = (globalThis as unknown as { axe: { run: () => Promise<AxeResult> } }).axe;
      const result = await run();
      return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
    });
    assert.deepEqual(violations, [], what);
  };
  return { page, context, open, assertAccessible, complaints };
}

type AxeResult = { violations: { id: string; nodes: { html: string }[] }[] };

let source: string | undefined;

function axe(): string {
  source ??= readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  return source;
}

/** Errors, exceptions, reports of the content security policy, and requests to other origins. */
function complaintsOf(page: Page, url: string): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    // The first question of a page is who is signed in, and 401 is the answer where nobody is.
    const isQuestion = message.location().url.endsWith('/api/v1/session');
    if (message.type() === 'error' && !isQuestion) complaints.push(message.text());
  });
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== url && protocol !== 'data:') complaints.push(`request to ${request.url()}`);
  });
  return complaints;
}
