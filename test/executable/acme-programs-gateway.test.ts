/** ACME clients of others order from a public CA through the vault: each waits for the order there. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import type { AcmeService } from '../harness/acme/programs/program.ts';
import { acmePrograms } from '../harness/acme/programs/programs.ts';
import { kept, succeeded } from '../harness/acme/programs/vault.ts';
import { acmeVault, needsAcme } from '../harness/acme/vault.ts';
import { visit } from '../harness/http/https-client.ts';
import { tempDir } from '../harness/temp-dir.ts';

// Hooks that a test adds run at its own end.
const ends: (() => unknown)[] = [];
after(async () => {
  for (const end of ends) await end();
});

/** Creates an ACME client of the vault. */
type NewClient = (name: string) => Promise<AcmeService>;

let started: Promise<NewClient> | undefined;

/** One vault serves all programs: it orders from Pebble, and presents the challenges in BIND. */
function sharedGateway(): Promise<NewClient> {
  started ??= gateway();
  return started;
}

async function gateway(): Promise<NewClient> {
  const vault = await acmeVault({ after: (end) => ends.push(end as () => unknown) }, { retryAfter: 1 });
  await vault.addDnsProvider();
  const { url } = await vault.serve('--tls-certificate', 'vault');
  const caFile = join(vault.dir, 'vault.pem');
  writeFileSync(caFile, (await visit(`${url}/client/ca.crt`)).body);
  return async (name) => {
    const options = ['--name', name, '--domain', '*.example.test', '--issuer', 'pebble', '--json'];
    const made = JSON.parse(await vault.done('acme-client', 'create', ...options));
    return { directoryUrl: `${url}/acme/pebble/directory`, caFile, kid: made.kid, hmacKey: made.hmac_key };
  };
}

suite('through the gateway', needsAcme(), () => {
  for (const program of acmePrograms)
    test(`${program.name} gets a certificate of the public CA`, program.needs(), async (t) => {
      const client = await sharedGateway();
      const home = program.home(tempDir(t), await client(program.name));
      if (home.register) succeeded(await home.register());
      const name = `${program.name}.example.test`;
      succeeded(await home.issue(name));
      assert.match(kept(home, name).issuer, /^CN=Pebble Intermediate/m);
    });
});
