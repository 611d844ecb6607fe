/** ACME clients of others that ask when to renew (RFC 9773) do so when the vault says, and not before. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { acmePrograms } from '../harness/acme/programs/programs.ts';
import { type AcmeServer, acmeServer, kept, succeeded } from '../harness/acme/programs/vault.ts';
import { tempDir } from '../harness/temp-dir.ts';

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

for (const { name: program, needs, home: homeIn, asksForRenewalInfo } of acmePrograms) {
  if (!asksForRenewalInfo) continue;

  test(`${program} renews a certificate that was revoked, and no other`, needs(), async (t) => {
    const vault = await sharedVault();
    const zone = `${program}.example.test`;
    const home = homeIn(tempDir(t), await vault.client(program, '--domain', `*.${zone}`));
    if (home.register) succeeded(await home.register());
    const [calm, revoked] = [`calm.${zone}`, `revoked.${zone}`];
    for (const name of [calm, revoked]) succeeded(await home.issue(name));
    const before = [calm, revoked].map((name) => kept(home, name).serialNumber);
    await vault.done('certificate', 'revoke', '--name', revoked);
    for (const name of [calm, revoked]) succeeded((await home.renewIfDue?.(name)) ?? assert.fail());
    assert.equal(kept(home, calm).serialNumber, before[0]);
    assert.notEqual(kept(home, revoked).serialNumber, before[1]);
  });
}
