/**
 * Pages of other sites, in the browser of a signed-in administrator, can neither change nor read anything: from another
 * domain, whose requests carry no cookie, and from a subdomain, whose requests do. Browsers send Sec-Fetch-Site to
 * names under localhost, but only Origin to other names without HTTPS, so the tests use both.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite, type TestContext, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { type Person, type Visit, visit } from '../harness/console/visit.ts';
import { eventually } from '../harness/eventually.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { type Attack, attacks, probes } from './cross-site-attacks.ts';

const chromium = needs('chromium');

/** A server of another site. */
async function otherSite(t: TestContext): Promise<number> {
  const server = createServer((request, response) => {
    const policy = request.url === '/no-referrer' ? { 'Referrer-Policy': 'no-referrer' } : {};
    response.writeHead(200, { 'Content-Type': 'text/html', ...policy }).end('<!doctype html><body>');
  }).listen(0, '127.0.0.1');
  t.after(() => server.close().closeAllConnections());
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** A vault at `vault.DOMAIN`, with alice signed in. */
async function vaultAt(t: TestContext, domain: string): Promise<{ there: Visit; alice: Person }> {
  const there = await visit(t, { url: ({ url }) => `http://vault.${domain}:${new URL(url).port}` });
  const alice = await there.alice();
  await alice.createCertificates('www.example.test');
  const key = { name: 'web-1', scopes: ['certificates:read'], certificates: ['www.example.test'] };
  await alice.ask('POST', '/api-keys', key);
  // Browsers report the rejected requests of other sites as errors.
  there.excuse(/./);
  return { there, alice };
}

/** The state that an attack could change. */
async function stateOf({ ask }: Person): Promise<unknown> {
  const lists = ['/certificates', '/api-keys', '/administrators', '/account/sessions'];
  const events = (await ask('GET', '/audit-events')) as { id: number; action: string }[];
  return {
    session: await ask('GET', '/session'),
    lists: await Promise.all(lists.slice(0, 3).map((path) => ask('GET', path))),
    changes: events.filter(({ action }) => action !== 'access.refuse'),
  };
}

/** The number of denied requests of alice's session in the audit log. */
async function refusalsOf({ ask }: Person): Promise<number> {
  const events = (await ask('GET', '/audit-events?action=access.refuse')) as {
    actor: string;
    detail: unknown;
  }[];
  for (const { actor, detail } of events) {
    assert.equal(actor, 'admin:alice');
    assert.deepEqual(detail, { code: 'forbidden', reason: 'from another site' });
  }
  return events.length;
}

/** Runs an attack from a page of another site. Returns the requests that the vault received. */
async function attack(
  page: Page,
  from: string,
  vault: string,
  { script, refusal }: Attack,
): Promise<Request[]> {
  await page.goto(from);
  const sent: Request[] = [];
  const note = (request: Request) => {
    if (request.url().startsWith(vault) && request.method() !== 'GET') sent.push(request);
  };
  page.on('request', note);
  const leaked = await page.evaluate(`{ const vault = ${JSON.stringify(vault)}; ${script} }`);
  if (refusal === 'page') await page.waitForURL(`${vault}/**`);
  else assert.match(String(leaked), /^(stopped)?$/);
  page.off('request', note);
  return sent;
}

/** The number of POST requests that the vault rejected with 403, from its log. */
function refusedBy({ server }: Visit): number {
  const lines = server.log().match(/^\{.*\}$/gm) ?? [];
  const requests = lines.map((line) => JSON.parse(line) as { method?: string; status?: number });
  return requests.filter(({ method, status }) => method === 'POST' && status === 403).length;
}

for (const domain of ['localhost', 'test']) {
  suite(`from another site, with ${domain === 'test' ? 'Origin' : 'Sec-Fetch-Site'}`, () => {
    test('requests change nothing', chromium, async (t) => {
      const { there, alice } = await vaultAt(t, domain);
      const port = await otherSite(t);
      const page = await alice.context.newPage();
      const before = await stateOf(alice);
      const sites = [
        { from: `http://evil.${domain}:${port}/`, sendsCookie: false },
        { from: `http://sub.vault.${domain}:${port}/`, sendsCookie: true },
        { from: `http://sub.vault.${domain}:${port}/no-referrer`, sendsCookie: true },
      ];
      let [refused, recorded] = [0, 0];
      for (const { from, sendsCookie } of sites) {
        for (const attempt of attacks) {
          const what = `${attempt.title}, from ${from}`;
          const [request] = await attack(page, from, there.url, attempt);
          if (attempt.refusal === 'nowhere') continue;
          refused += 1;
          await eventually(what, () => refusedBy(there) === refused || undefined);
          if (sendsCookie && !request?.url().endsWith('/session')) recorded += 1;
        }
        assert.equal(refusedBy(there), refused, 'a request that the browser blocked reached the vault');
        assert.deepEqual(await stateOf(alice), before, from);
      }
      // Only requests with the cookie can be attributed to alice.
      assert.equal(await refusalsOf(alice), recorded);
      await alice.open('/certificates');
      await alice.page.getByRole('button', { name: 'Healthy 1' }).waitFor();
    });

    test('requests read nothing, and the console cannot be framed', chromium, async (t) => {
      const { there, alice } = await vaultAt(t, domain);
      const port = await otherSite(t);
      const page = await alice.context.newPage();
      for (const host of ['evil', 'sub.vault']) {
        const from = `http://${host}.${domain}:${port}/`;
        for (const [title, script] of probes) {
          await page.goto(from);
          const leaked = await page.evaluate(`{ const vault = ${JSON.stringify(there.url)}; ${script} }`);
          assert.match(String(leaked), /^(stopped)?$/, `${title}, from ${from}`);
        }
        await page.goto(from);
        await page.evaluate(
          `document.body.append(Object.assign(document.createElement('iframe'), { src: ${JSON.stringify(there.url)} }))`,
        );
        await page.waitForEvent('framenavigated', (frame) => frame !== page.mainFrame());
        const [, framed] = page.frames();
        assert.match(framed?.url() ?? '', /^chrome-error:/, `framed by ${from}`);
      }
    });
  });
}

test('a page that opens the console in a window has no access to it', chromium, async (t) => {
  const { there, alice } = await vaultAt(t, 'localhost');
  const port = await otherSite(t);
  for (const host of ['evil', 'sub.vault']) {
    const page = await alice.context.newPage();
    await page.goto(`http://${host}.localhost:${port}/`);
    const opening = alice.context.waitForEvent('page');
    await page.evaluate(`globalThis.opened = window.open(${JSON.stringify(there.url)}), 0`);
    const opened = await opening;
    await opened.locator('h1').waitFor();
    assert.equal(await opened.evaluate('window.opener'), null);
    assert.equal(await page.evaluate('opened.closed'), true, 'the other page can access the window');
  }
});
