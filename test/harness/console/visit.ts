/**
 * A new vault, and people who use its console in the system's Chromium, each with their own cookies. When a test ends,
 * it fails if a page reported an error or sent a request elsewhere (console-watch.ts), unless the test excused it.
 */

import assert from 'node:assert/strict';
import { after, type TestContext } from 'node:test';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { patience } from '../eventually.ts';
import { goodPassword } from '../http/sign-in-fixtures.ts';
import { findProgram } from '../processes/missing-program.ts';
import { type RunningVault, serve, vault } from '../processes/vault-process.ts';
import { tempDir } from '../temp-dir.ts';
import { startWatch, type Watch } from './watch.ts';

export type Visit = Pick<Watch, 'complaints' | 'expectComplaint' | 'excuse'> & {
  readonly server: RunningVault;
  /** The vault's URL in the browser. */
  readonly url: string;
  /** Runs a command of the executable on this vault and returns its output. Fails with its error. */
  readonly command: (...args: readonly string[]) => Promise<string>;
  /** A person who is not signed in. */
  readonly visitor: (options?: BrowserContextOptions) => Promise<Person>;
  /** The first administrator, alice, after setup; on the page of the certificates. */
  readonly alice: (options?: BrowserContextOptions) => Promise<Person>;
};

export type Person = {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Opens a path, and waits until the page is loaded. */
  readonly open: (path: string) => Promise<void>;
  /** The same without reloading, as links of the console do. */
  readonly move: (path: string) => Promise<void>;
  /** Waits until the page is loaded. */
  readonly settled: () => Promise<void>;
  /** Sends an API request from the person's page, which must be a page of the vault. */
  readonly ask: (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    data?: unknown,
  ) => Promise<unknown>;
  /** Creates certificates of the private CA; each has its name as its domain. */
  readonly createCertificates: (...names: readonly string[]) => Promise<void>;
};

export type VisitOptions = {
  /** An existing data directory, instead of a new vault. */
  readonly dataDir?: string;
  readonly start?: () => Promise<RunningVault>;
  /** Another URL of the vault; by default that of its server. */
  readonly url?: (server: RunningVault) => string;
};

/** Starting a browser is slow, so the tests of a file share one. */
let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

function sharedBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: findProgram('chromium') ?? '',
    args: ['--no-sandbox', '--host-resolver-rules=MAP *.test 127.0.0.1'],
  });
  return browser;
}

/** Starts the vault. The vault and all browser contexts close when the test ends. */
export async function visit(t: TestContext, options: VisitOptions = {}): Promise<Visit> {
  const contexts: BrowserContext[] = [];
  let stopWatching = () => {
    // Replaced once the watch starts.
  };
  // Registered before the server starts, because hooks run in order and contexts must close first.
  t.after(async () => {
    stopWatching();
    await Promise.all(contexts.map((context) => context.close()));
  });
  const dataDir = options.dataDir ?? tempDir(t);
  const server = await (options.start ?? (() => serve(t, dataDir)))();
  const url = options.url?.(server) ?? server.url;
  const watch = startWatch(url);
  stopWatching = watch.stop;
  // Last, behind all hooks of the test, because hooks after one that throws do not run.
  t.after(() => t.after(() => assert.deepEqual(watch.complaints(), [], 'errors in the browser')));
  const visitor = async (contextOptions: BrowserContextOptions = {}) => {
    const started = await sharedBrowser();
    const context = await started.newContext({ baseURL: url, locale: 'en-GB', ...contextOptions });
    contexts.push(context);
    context.setDefaultTimeout(patience);
    watch.add(context);
    return personIn(context);
  };
  const command: Visit['command'] = async (...args) => {
    const ended = await vault([...args, '--data-dir', dataDir]);
    assert.equal(ended.code, 0, ended.stderr);
    return ended.stdout.trim();
  };
  return {
    server,
    url,
    complaints: watch.complaints,
    expectComplaint: watch.expectComplaint,
    excuse: watch.excuse,
    command,
    visitor,
    alice: async (contextOptions) => {
      const person = await visitor(contextOptions);
      await person.page.goto(await setupLink({ command, url }));
      await fillSetup(person.page, 'alice');
      await person.page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
      await person.settled();
      return person;
    },
  };
}

async function personIn(context: BrowserContext): Promise<Person> {
  const page = await context.newPage();
  const ask: Person['ask'] = async (method, path, data) => {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method, ...(data !== undefined && { headers, body: JSON.stringify(data) }) };
    const answer = (await page.evaluate(
      `fetch('/api/v1' + ${JSON.stringify(path)}, ${JSON.stringify(init)})
        .then(async (response) => ({ status: response.status, text: await response.text() }))`,
    )) as { readonly status: number; readonly text: string };
    assert.ok(answer.status < 400, `${method} ${path}: ${answer.status} ${answer.text}`);
    return answer.text === '' ? undefined : JSON.parse(answer.text);
  };
  const settled = async () => {
    await page.locator('h1').waitFor();
    await page.locator('.skeleton, main[aria-busy]').first().waitFor({ state: 'detached' });
  };
  return {
    context,
    page,
    open: async (path) => {
      await page.goto(path);
      await settled();
    },
    move: async (path) => {
      await page.evaluate(
        `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
      );
      await rendered(page);
      await settled();
    },
    settled,
    ask,
    createCertificates: async (...names) => {
      for (const name of names)
        await ask('POST', '/certificates', { name, domains: [name], issuer: 'local-ca' });
    },
  };
}

/** Waits until the browser has rendered all changes so far. */
export async function rendered(page: Page): Promise<void> {
  const frame = 'requestAnimationFrame';
  await page.evaluate(`new Promise((resolve) => ${frame}(() => ${frame}(() => setTimeout(resolve))))`);
}

/** A new setup link, which replaces the previous one. */
export function setupLink({ command, url }: Pick<Visit, 'command' | 'url'>): Promise<string> {
  return command('admin', 'setup-link', '--url', url);
}

/** Fills in and submits the setup page. */
export async function fillSetup(page: Page, name: string, password: string = goodPassword): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByLabel('Confirm password').fill(password);
  await page.getByRole('button', { name: 'Set up' }).click();
}

/** Fills in and submits the sign-in page, which must be open. */
export async function signIn(page: Page, name = 'alice', password: string = goodPassword): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').waitFor();
}
