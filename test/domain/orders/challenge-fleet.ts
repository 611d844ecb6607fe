/**
 * Many renewals at once whose names are validated by dns-01, on a clock that passes as fast as this machine can work:
 * the engine's own code, a scripted CA that looks at the servers of a simulated DNS, and the providers that a test
 * adds.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { ConnectionPool } from '../../../src/db/postgres/connection-pool.ts';
import type { RenewalRow } from '../../../src/db/tables/renewals/renewals.ts';
import { AcmeClients } from '../../../src/domain/acme-accounts/acme-clients.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { runClaimed } from '../../../src/jobs/renewal-worker.ts';
import { type ScriptedAcme, scriptedAcme } from '../../harness/ca/scripted-acme.ts';
import { Refusal } from '../../harness/ca/scripted-acme-jws.ts';
import { SimulatedDns } from '../../harness/dns/simulated-dns.ts';
import { inSimulatedDns } from '../../harness/dns/simulated-dns-providers.ts';
import { type SimulatedRoute53, simulatedRoute53 } from '../../harness/dns/simulated-route53.ts';
import { acmeIssuer, forever, makeCertificate } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';
import { QuietClock } from './quiet-clock.ts';

export type ChallengeFleet = {
  readonly vault: Vault;
  readonly clock: QuietClock;
  readonly dns: SimulatedDns;
  readonly route53: SimulatedRoute53;
  readonly ca: ScriptedAcme;
  /** Adds a certificate of so many names under `zone`; its renewal is queued. */
  readonly certificate: (name: string, names: number, zone?: string) => Promise<void>;
  /** Carries out all that is queued, at the same time, and gives the renewals when the last has ended. */
  readonly renew: () => Promise<readonly RenewalRow[]>;
};

/** A vault in a DNS with the zone `example.test`, which is Route 53's where a provider for it is added. */
export async function challengeFleet(
  t: TestContext,
  options: { readonly configured?: string; readonly zone?: Parameters<SimulatedDns['zone']>[1] } = {},
): Promise<ChallengeFleet> {
  const clock = new QuietClock();
  // Where a server has the database, its answers take real time.
  const { read } = ConnectionPool.prototype;
  t.mock.method(
    ConnectionPool.prototype,
    'read',
    function watched(this: ConnectionPool, ...args: Parameters<typeof read>) {
      return clock.watched(read.apply(this, args));
    },
  );
  // In memory where there is such a place: leases are kept fresh thousands of times, and each would wait for the disk.
  const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'vault-fleet-'));
  const opened = await testVault(t, { world: clock, dataDir: join(root, 'data') });
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const dns = new SimulatedDns(clock);
  dns.zone('example.test', options.zone);
  const ca = await scriptedAcme(t, {
    now: clock.now,
    challengeTypes: ['dns-01'],
    validate: ({ identifier, keyAuthorization }) => {
      const name = `_acme-challenge.${identifier}`;
      const isThere = dns.isEverywhere(name, hash('sha256', keyAuthorization, 'base64url'));
      return isThere ? undefined : new Refusal('unauthorized', `not everywhere at ${name}`);
    },
  });
  const { world, log } = opened.vault;
  const outbound = clock.watching(opened.vault.outbound);
  const db = new Proxy(opened.vault.db, {
    get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target);
      if (typeof value !== 'function') return value;
      return key === 'write' ? clock.watching(value.bind(target)) : value.bind(target);
    },
  });
  const watched = { ...opened.vault, db, outbound, acme: new AcmeClients({ world, outbound, log }) };
  const route53 = simulatedRoute53(clock, dns, ['example.test']);
  const vault = inSimulatedDns(watched, dns, route53, options.configured);
  await clock.run(acmeIssuer(vault, 'ca', ca.directoryUrl));
  const certificate = async (name: string, names: number, zone = 'example.test') => {
    const domains = Array.from({ length: names }, (_, index) => `n${index}.${name}.${zone}`);
    await makeCertificate(vault, name, { issuer: 'ca', domains });
  };
  const renew = async () => {
    const running: Promise<void>[] = [];
    for (;;) {
      const claimed = await claimRenewal(vault, 'worker');
      if (claimed === undefined) break;
      running.push(runClaimed(vault, claimed, forever));
    }
    await clock.run(Promise.all(running));
    return vault.db.reader.selectFrom('renewals').selectAll().orderBy('id').execute();
  };
  return { vault, clock, dns, route53, ca, certificate, renew };
}
