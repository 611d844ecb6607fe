/** Caddy as an ACME client of the vault: Chromium trusts what it serves, before and after it renews. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { type Browser, chromium } from 'playwright-core';
import { startCaddy } from '../harness/acme/programs/caddy.ts';
import { type AcmeServer, acmeServer } from '../harness/acme/programs/vault.ts';
import { eventually } from '../harness/eventually.ts';
import { visit } from '../harness/http/https-client.ts';
import { findProgram, needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const needed = ['chromium', 'certutil', 'caddy'].map((program) => needs(program));
const all = needed.find(({ skip }) => skip !== undefined) ?? {};

// Hooks that a test adds run at its own end.
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends) await end();
});

let started: Promise<AcmeServer> | undefined;

function sharedVault(): Promise<AcmeServer> {
  started ??= acmeServer({ after: (end) => ends.push(end as () => unknown) });
  return started;
}

/** Chromium of a user whose database of roots has this one. */
async function chromiumTrusting(t: TestContext, root: string): Promise<Browser> {
  const home = tempDir(t);
  const [database, file] = [join(home, '.pki', 'nssdb'), join(home, 'root.pem')];
  mkdirSync(database, { recursive: true });
  writeFileSync(file, root);
  const certutil = (...args: readonly string[]) =>
    execFileSync('certutil', ['-d', `sql:${database}`, ...args]);
  certutil('-N', '--empty-password');
  certutil('-A', '-n', 'vault', '-t', 'C,,', '-i', file);
  const browser = await chromium.launch({
    executablePath: findProgram('chromium') ?? '',
    args: ['--no-sandbox', '--host-resolver-rules=MAP *.test 127.0.0.1'],
    env: { ...process.env, HOME: home },
  });
  t.after(() => browser.close());
  return browser;
}

/** What the page says, over a new connection, and the seconds at which the certificate begins. */
async function seen(browser: Browser, url: string): Promise<{ text: string; validFrom: number }> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const response = await page.goto(url);
    const details = await response?.securityDetails();
    return { text: (await response?.text()) ?? '', validFrom: details?.validFrom ?? 0 };
  } finally {
    await context.close();
  }
}

test(
  'Caddy serves and renews a certificate that Chromium trusts, and cannot renew once its client is revoked',
  all,
  async (t) => {
    const vault = await sharedVault();
    await vault.done('issuer', 'add', '--name', 'edge', '--type', 'local-ca', '--lifetime', '5m');
    const name = 'www.caddy.example.test';
    const service = await vault.client('caddy', '--domain', name, '--issuer', 'edge');
    const directoryUrl = service.directoryUrl.replace('local-ca', 'edge');
    const { body: root } = await visit(`${vault.server.url}/client/cas/edge/ca.crt`);
    // A twentieth of the validity lies before the order: it renews some seconds later.
    const caddy = await startCaddy(t, { ...service, directoryUrl }, name, 0.94);
    const served = () => visit(`https://127.0.0.1:${caddy.port}`, { ca: root, servername: name });
    await eventually('a certificate', () => served().catch(() => undefined));
    const browser = await chromiumTrusting(t, root);
    const before = await seen(browser, caddy.url);
    assert.equal(before.text, 'Hello');
    // It may have been renewed before Chromium had started: what Chromium saw is the one before.
    await eventually('the renewed certificate', async () =>
      Date.parse((await served()).leaf.validFrom) > before.validFrom * 1000 ? true : undefined,
    );
    const renewed = await seen(browser, caddy.url);
    assert.equal(renewed.text, 'Hello');
    assert.ok(renewed.validFrom > before.validFrom);
    await vault.done('acme-client', 'revoke', 'caddy');
    await eventually('the refusal', () => (/unauthorized.*revoked/.test(caddy.log()) ? true : undefined));
    assert.equal((await seen(browser, caddy.url)).text, 'Hello');
  },
);

test(
  'Caddy reports an error for a wrong HMAC key and for a domain that its client may not order',
  needs('caddy'),
  async (t) => {
    const vault = await sharedVault();
    const service = await vault.client('other', '--domain', '*.caddy.example.test');
    const hmacKey = randomBytes(32).toString('base64url').replace(/^-/, 'A');
    const [stranger, greedy] = await Promise.all([
      startCaddy(t, { ...service, hmacKey }, 'api.caddy.example.test'),
      startCaddy(t, service, 'www.other.test'),
    ]);
    await eventually('the wrong key', () =>
      stranger.log().includes('acme:error:unauthorized') ? true : undefined,
    );
    const refused = /acme:error:rejectedIdentifier.*www\.other\.test/;
    await eventually('the forbidden name', () => (refused.test(greedy.log()) ? true : undefined));
  },
);
