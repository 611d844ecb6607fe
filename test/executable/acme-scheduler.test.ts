/** Short-lived certificates that nobody thinks of: the scheduler renews them while clients download all the time. */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { issuedBy } from '../harness/acme/certificates.ts';
import {
  acmeVault,
  type Client,
  type Download,
  frontedVault,
  letPass,
  needsAcme,
} from '../harness/acme/vault.ts';
import { pebble } from '../harness/ca/pebble.ts';
import { eventually } from '../harness/eventually.ts';
import type { RunningVault } from '../harness/processes/vault-process.ts';

/** Seconds. A certificate is renewed when half of them are over. */
const validity = 120;
/** Takes a minute each. */
const renewals = 1;

type Ended = { readonly requested_by: string; readonly status: string; readonly issuer: string };

/** What a client saw. */
type Seen = { readonly versions: Set<string>; downloads: number; pairs: number };

/** Downloads key and chain once, as a pair by `?version=` and as two files on their own, and looks at all of it. */
async function look(client: Client, server: RunningVault, seen: Seen): Promise<void> {
  const fetched = async (file: string) => {
    const asked = Date.now();
    const got = await client(server, 'web', file);
    assert.equal(got.status, 200, `${file}: ${got.body}`);
    seen.downloads += 1;
    seen.versions.add(got.version);
    if (file.startsWith('fullchain')) assertValid(got.body, asked);
    return got;
  };
  const [chain, key] = await Promise.all([fetched('fullchain.crt'), fetched('private.key')]);
  if (chain.version === key.version) assertPair(chain, key, seen);
  const pinned = await fetched(`private.key?version=${chain.version}`);
  assert.equal(pinned.version, chain.version);
  assertPair(chain, pinned, seen);
  assertPair(await client(server, 'web', `fullchain.crt?version=${key.version}`), key, seen);
}

function assertValid(pem: string, at: number): void {
  const { validFromDate, validToDate } = new X509Certificate(pem);
  // Of a second, since certificates know no parts of it.
  assert.ok(validFromDate.getTime() <= at + 1000, `not valid yet: ${validFromDate.toISOString()}`);
  assert.ok(validToDate.getTime() > at, `not valid any more: ${validToDate.toISOString()}`);
}

function assertPair(chain: Download, key: Download, seen: Seen): void {
  const leaf = new X509Certificate(chain.body);
  assert.ok(leaf.checkPrivateKey(createPrivateKey(key.body)), `version ${chain.version}`);
  seen.pairs += 1;
}

suite('the scheduler', needsAcme(), () => {
  test(`certificates valid for ${validity} seconds are renewed, and each download is a valid pair`, {
    timeout: 1_000_000,
  }, async (t) => {
    // Pebble's windows reach from the first to the last moment; without them the vault decides on the moment itself.
    const { vault } = await frontedVault(t, { certificateValidityPeriod: validity, hidesRenewalInfo: true });
    const server = await vault.serve();
    const client = await vault.client();
    await vault.issue('web', '--domain', 'www.example.test');
    const seen: Seen = { versions: new Set(), downloads: 0, pairs: 0 };
    const deadline = Date.now() + (renewals + 1) * validity * 1000;
    while (seen.versions.size <= renewals) {
      assert.ok(Date.now() < deadline, `only versions ${[...seen.versions]}: ${server.log()}`);
      await look(client, server, seen);
      await sleep(250);
    }
    const rows = vault.query<{ requested_by: string; status: string }>(
      'select requested_by, status from renewals order by id',
    );
    assert.deepEqual(
      rows.slice(0, renewals + 1).map(({ requested_by: by, status }) => [by, status]),
      [['local-cli', 'succeeded'], ...Array.from({ length: renewals }, () => ['system', 'succeeded'])],
    );
    t.diagnostic(`${seen.downloads} downloads, ${seen.pairs} pairs, versions ${[...seen.versions]}`);
  });

  test('near expiry, the fallback issuer issues the certificate if the first issuer is unreachable', async (t) => {
    const vault = await acmeVault(t, { certificateValidityPeriod: 90 * 86_400 });
    const { server: dnsServer } = vault.dns;
    const fallback = await pebble(t, { dnsServer, httpPort: vault.httpPort, tlsPort: vault.tlsPort });
    await vault.addIssuer('second', fallback);
    let server = await vault.serve();
    await vault.issue('web', '--domain', 'www.example.test', '--fallback-issuer', 'second');
    process.kill(vault.ca.pid, 'SIGKILL');
    const ended = (count: number) =>
      eventually('the renewals have ended', () => {
        const rows = vault.query<Ended>(
          `select requested_by, status, issuers.name as issuer from renewals
             join issuers on issuers.id = renewals.issuer_id where finished_at is not null order by renewals.id`,
        );
        return rows.length === count ? rows : undefined;
      });
    // Of its 90 days 85 pass; then a day between attempts. The scheduler looks when it starts.
    for (const [index, days] of [85, 1, 1].entries()) {
      await server.end();
      letPass(vault, days * 86_400_000);
      server = await vault.serve();
      await ended(index + 2);
    }
    assert.deepEqual(
      (await ended(4)).map(({ requested_by, status, issuer }) => [requested_by, status, issuer]),
      [
        ['local-cli', 'succeeded', 'pebble'],
        ['system', 'failed', 'pebble'],
        ['system', 'failed', 'pebble'],
        ['system', 'succeeded', 'second'],
      ],
    );
    const failed = JSON.parse(await vault.done('renewals', 'list', '--failed', '--json'));
    assert.match(failed[0].error, /ECONNREFUSED|refused|cannot be reached/i);
    const { body } = await (await vault.client())(server, 'web', 'fullchain.crt');
    assertValid(body, Date.now());
    assert.equal(issuedBy(fallback), 1);
  });
});
