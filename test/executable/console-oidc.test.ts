/** Sign-in by OpenID Connect in the browser: the button, the way back, and the page for those who are refused. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { violations } from '../harness/console/axe.ts';
import { visit } from '../harness/console/visit.ts';
import { clientId, clientSecret, scriptedProvider } from '../harness/oidc/scripted-provider.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

test(
  'a person signs in by OpenID Connect with a button, and one without a role reads what to do',
  browser,
  async (t) => {
    const provider = await scriptedProvider(t, Date.now);
    const dataDir = tempDir(t);
    const secretFile = join(tempDir(t), 'secret');
    writeFileSync(secretFile, `${clientSecret}\n`, { mode: 0o600 });
    const url = `http://127.0.0.1:${await freePort()}`;
    const args = [
      ...['--public-url', url, '--oidc-issuer', provider.issuer, '--oidc-client-id', clientId],
      ...['--oidc-client-secret-file', secretFile, '--oidc-admins', 'vault-admins'],
      ...['--allow-outbound', '127.0.0.1'],
    ];
    const opened = await visit(t, {
      dataDir,
      start: () => serve(t, dataDir, { args, listen: new URL(url).host }),
    });
    opened.excuse(/requested http:\/\/127\.0\.0\.1:\d+\/authorize\?/);
    const { page, open, settled } = await opened.visitor();
    await open('/administrators');
    const button = page.getByRole('button', { name: `Sign in with ${new URL(provider.issuer).host}` });
    provider.claims = { groups: ['staff'] };
    await button.click();
    await page.getByText('No access to this vault').waitFor();
    assert.deepEqual(await violations(page), []);
    provider.claims = {};
    await button.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'alice: sessions, password, sign out' }).waitFor();
    await open('/administrators');
    await page.getByText('The provider decides the role').waitFor();
    await open('/account/password');
    await page.getByText('Change your password at the identity provider.').waitFor();
    await settled();
  },
);
