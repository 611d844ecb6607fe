/** What each ACME client of others must pass at the vault: a whole life of its account and certificates. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, suite, test } from 'node:test';
import { tempDir } from '../../temp-dir.ts';
import type { AcmeProgram } from './program.ts';
import { type AcmeServer, acmeServer, kept, succeeded, wasRefused } from './vault.ts';

// Hooks that a test adds run at its own end.
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends) await end();
});

let started: Promise<AcmeServer> | undefined;

/** One vault serves all programs. */
function sharedVault(): Promise<AcmeServer> {
  started ??= acmeServer({ after: (end) => ends.push(end as () => unknown) });
  return started;
}

/** Tests of these programs; one vault serves them all. */
export function testLives(programs: readonly AcmeProgram[]): void {
  for (const program of programs) {
    const zone = `${program.name}.example.test`;
    const options = ['--domain', `*.${zone}`];

    suite(program.name, program.needs(), () => {
      test('registers, and issues, renews and revokes certificates until its account is deactivated', async (t) => {
        const vault = await sharedVault();
        const home = program.home(tempDir(t), await vault.client(program.name, ...options));
        const name = `www.${zone}`;
        if (home.register) succeeded(await home.register());
        succeeded(await home.issue(name));
        const first = kept(home, name);
        assert.match(first.issuer, /^CN=Certificate Vault Intermediate/m);
        wasRefused(await home.issue('www.other.test'), /www\.other\.test/);
        if (home.changeKey) succeeded(await home.changeKey());
        if (home.renew) {
          succeeded(await home.renew(name));
          assert.notEqual(kept(home, name).serialNumber, first.serialNumber);
        }
        if (home.revoke) {
          const shown = async () => (await vault.done('certificate', 'show', '--name', name)).stdout;
          assert.doesNotMatch(await shown(), /revoked/i);
          succeeded(await home.revoke(name));
          assert.match(await shown(), /revoked/i);
        }
        if (home.deactivate === undefined) return;
        succeeded(await home.deactivate());
        assert.deepEqual(vault.accounts(program.name), ['deactivated']);
        // Programs that register as they order have another account then.
        if (home.register)
          assert.ok(!(await home.issue(`after.${zone}`)).isDone, 'a deactivated account got a certificate');
      });

      test('is rejected with a wrong HMAC key', async (t) => {
        const vault = await sharedVault();
        const service = await vault.client(`${program.name}-wrong`, ...options);
        const hmacKey = randomBytes(32).toString('base64url').replace(/^-/, 'A');
        const home = program.home(tempDir(t), { ...service, hmacKey });
        const refused = await (home.register ?? home.issue)(`www.${zone}`);
        wasRefused(refused, /unauthorized|external account binding/i);
      });
    });
  }
}
