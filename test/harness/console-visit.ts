/**
 * A new vault, and the people in front of it, each with cookies of their own, in the system's Chromium. A test fails
 * at its end where a page did what none may do (console-watch.ts), unless that is excused.
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
import { startWatch, type Watch } from './console-watch.ts';
import { findProgram } from './missing-program.ts';
import { goodPassword } from './sign-in-fixtures.ts';
import { tempDir } from './temp-dir.ts';
import { type RunningVault, serve, vault } from './vault-process.ts';

export type Visit = Pick<Watch, 'complaints' | 'expectComplaint' | 'excuse'> & {
  readonly server: RunningVault;
  /** Where the people find the vault. */
  readonly url: string;
  /** A command of the executable on this vault: what it prints. Fails with its complaint. */
  readonly command: (...args: readonly string[]) => Promise<string>;
  /** Somebody who is not signed in. */
  readonly visitor: (options?: BrowserContextOptions) => Promise<Person>;
  /** The first administrator, alice, by the link that the server printed; on the page of the certificates. */
  readonly alice: (options?: BrowserContextOptions) => Promise<Person>;
};

export type Person = {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Goes to a path, and waits until everything of it is there. */
  readonly open: (path: string) => Promise<void>;
  /** The same without loading anything anew, as links of the console do. */
  readonly move: (path: string) => Promise<void>;
  /** Waits until everything of the page is there. */
  readonly settled: () => Promise<void>;
  /** Asks the API from the person's page, which has to be one of the vault. */
  readonly ask: (
    method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
    path: string,
    data?: unknown,
  ) => Promise<unknown>;
  /** Makes certificates of the private CA; each has its name as its domain. */
  readonly makeCertificates: (...names: readonly string[]) => Promise<void>;
};

export type VisitOptions = {
  /** What is there already, in place of a new vault. */
  readonly dataDir?: string;
  readonly start?: () => Promise<RunningVault>;
  /** Another name of the vault: the URL of its server without it. */
  readonly url?: (server: RunningVault) => string;
};

/** Browsers start slowly, so the tests of a file share one. */
let browser: Promise<Browser> | undefined;
after(async () => (await browser)?.close());

function sharedBrowser(): Promise<Browser> {
  browser ??= chromium.launch({
    executablePath: findProgram('chromium') ?? '',
    args: ['--no-sandbox', '--host-resolver-rules=MAP *.test 127.0.0.1'],
  });
  return browser;
}

/** Starts the vault; it and everybody in front of it go with the test. */
export async function visit(t: TestContext, options: VisitOptions = {}): Promise<Visit> {
  const contexts: BrowserContext[] = [];
  let stopWatching = () => {
    // Nobody was there.
  };
  // The people go first: hooks run in the order in which they came.
  t.after(async () => {
    stopWatching();
    await Promise.all(contexts.map((context) => context.close()));
  });
  const dataDir = options.dataDir ?? tempDir(t);
  const server = await (options.start ?? (() => serve(t, dataDir)))();
  const url = options.url?.(server) ?? server.url;
  const watch = startWatch(url);
  stopWatching = watch.stop;
  // Last, because hooks after one that throws do not run.
  t.after(() => assert.deepEqual(watch.complaints(), [], 'the browser complains'));
  const visitor = async (wishes: BrowserContextOptions = {}) => {
    const started = await sharedBrowser();
    const context = await started.newContext({ baseURL: url, locale: 'en-GB', ...wishes });
    contexts.push(context);
    context.setDefaultTimeout(20_000);
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
    alice: async (wishes) => {
      const person = await visitor(wishes);
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
      await drawn(page);
      await settled();
    },
    settled,
    ask,
    makeCertificates: async (...names) => {
      for (const name of names)
        await ask('POST', '/certificates', { name, domains: [name], issuer: 'local-ca' });
    },
  };
}

/** Waits until the browser has drawn whatever has changed so far. */
export async function drawn(page: Page): Promise<void> {
  const frame = 'requestAnimationFrame';
  await page.evaluate(`new Promise((resolve) => ${frame}(() => ${frame}(() => setTimeout(resolve))))`);
}

/** A new setup link, which replaces the one before. */
export function setupLink({ command, url }: Pick<Visit, 'command' | 'url'>): Promise<string> {
  return command('admin', 'setup-link', '--url', url);
}

/** Fills in the setup page and sends it. */
export async function fillSetup(page: Page, name: string, password: string = goodPassword): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByLabel('Password, once more').fill(password);
  await page.getByRole('button', { name: 'Set up' }).click();
}

/** Fills in the sign-in page, where the person has to be, and sends it. */
export async function signIn(page: Page, name = 'alice', password: string = goodPassword): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation').waitFor();
}
