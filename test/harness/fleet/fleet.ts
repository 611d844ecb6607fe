/**
 * A fleet of certificates on a clock of its own: the renewal engine whole, with its jobs, on a real database, over
 * several CAs and DNS providers of which some are slow, down for a while, or refuse for ever. Counts what became of it.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { day, hour, minute, second } from '../../../src/base/duration.ts';
import type { Identifier } from '../../../src/base/identifier.ts';
import { toJson } from '../../../src/base/json.ts';
import { generatePrivateKey, publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { findVersion } from '../../../src/db/tables/certificates/certificate-versions.ts';
import {
  findCertificateById,
  insertCertificate,
  updateCertificate,
} from '../../../src/db/tables/certificates/certificates.ts';
import { findAcmeIssuer, findIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { ensureAccount } from '../../../src/domain/acme-accounts/acme-account.ts';
import { AcmeClients } from '../../../src/domain/acme-accounts/acme-clients.ts';
import { OpenedDnsProviders } from '../../../src/domain/dns-providers/opened-dns-providers.ts';
import { nextRenewalAt } from '../../../src/domain/schedule/renewal-plan.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { addVersion } from '../../../src/domain/versions/versions.ts';
import { runChallengeCleaner, runWindowWatcher } from '../../../src/jobs/periodic-jobs.ts';
import { runRenewalScheduler } from '../../../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../../src/jobs/renewal-worker.ts';
import { type Outbound, OutboundError } from '../../../src/net/outbound-http.ts';
import { makeChain } from '../ca/private-chain.ts';
import { addRoute53Provider, addSimulatedProvider } from '../dns/simulated-dns-providers.ts';
import { simulatedRoute53 } from '../dns/simulated-route53.ts';
import { acmeIssuer, forever } from '../issuance/renewal-fixtures.ts';
import { testVault } from '../test-vault.ts';
import type { TestWorld } from '../test-world.ts';
import { FleetCa, type FleetCaPlan, type FleetRefusal } from './ca.ts';
import { FleetClock } from './clock.ts';
import { FleetDns, type FleetProviderPlan, type OwnerOfRecord, type Span } from './dns.ts';
import { type RecordFigures, type RenewalFigures, recordFigures, renewalFigures } from './figures.ts';

export type FleetPlan = {
  readonly certificates: number;
  /** All of them are due within this time from the beginning, evenly. */
  readonly dueWithin: number;
  /** How long it runs. */
  readonly runs: number;
  /** The share of certificates that can never be renewed. */
  readonly broken: number;
  /**
   * The share of the first CA's certificates that have the names of the one before them, as one more with another key
   * has.
   */
  readonly twins: number;
  readonly maxNames: number;
  readonly cas: readonly Omit<FleetCaPlan, 'down'>[];
  /** Which CA is down, and from when to when after the beginning. */
  readonly caDown?: { readonly ca: number; readonly from: number; readonly to: number };
  readonly providers: readonly FleetProviderPlan[];
  /** The same of a provider of the kind `api`. */
  readonly providerDown?: { readonly provider: number; readonly from: number; readonly to: number };
  readonly seed: string;
  /** The least by which the clock moves: no delay is shorter. */
  readonly step: number;
  readonly say?: (line: string) => void;
};

/** `limitsMet` says when which CA refused what for one of its limits. */
export type FleetFigures = RenewalFigures & RecordFigures & { readonly limitsMet: readonly string[] };

const start = '2026-11-21T00:00:00Z';
/** The caching resolver of `--resolver`. */
const configured = '1.1.1.1:53';

/** Runs the whole simulation. */
export async function simulateFleet(t: Pick<TestContext, 'after'>, plan: FleetPlan): Promise<FleetFigures> {
  const clock = new FleetClock(start, plan.step);
  const chance = (what: string) => hash('sha256', `${plan.seed}/${what}`, 'buffer').readUInt32BE() / 2 ** 32;
  const opened = await testVault(t, { world: clock as unknown as TestWorld, dataDir: inMemory(t) });
  const dns = new FleetDns(clock);
  // A key that signs in a thread: the clock sees such work begin and end, and of other signatures only the beginning.
  const chain = await makeChain({ keyType: 'ec384' });
  const refusals = new Map<string, FleetRefusal>();
  const cas = plan.cas.map((ca, n) => {
    const down = plan.caDown?.ca === n ? spanOf(clock.now(), plan.caDown) : undefined;
    return new FleetCa({ ...ca, down }, { world: clock, chain, refusals, txt: (name) => dns.txt(name) });
  });
  const origins = new Map(cas.map((ca) => [new URL(ca.plan.directoryUrl).origin, ca]));
  const others: Outbound = async (request) => {
    const { origin } = new URL(request.url);
    const ca = origins.get(origin);
    if (ca === undefined) throw new OutboundError('unreachable', `nobody is at ${origin}`);
    return ca.answer(request);
  };
  const outbound = addZones(plan, clock, dns, others);
  const { log } = opened.vault;
  const vault: Vault = {
    ...opened.vault,
    outbound,
    acme: new AcmeClients({ world: clock, outbound, log }),
    dns: new OpenedDnsProviders({
      ...opened.vault.dns.context,
      outbound,
      resolver: dns.resolver({ configured }),
    }),
  };
  dns.ownerOf = ownersIn(t, opened.dataDir);
  await fill(vault, plan, { cas, dns, refusals, chance });
  opened.log.lines.length = 0;
  const stop = new AbortController();
  const jobs = [runRenewalScheduler, runRenewalWorker, runWindowWatcher, runChallengeCleaner].map((job) =>
    job(vault, stop.signal),
  );
  let nextDay = clock.now() + day;
  await clock.until(Date.parse(start) + plan.runs, () => {
    // Only what is told at the end counts; kept lines would fill the memory.
    opened.log.lines.length = 0;
    if (clock.now() < nextDay) return;
    nextDay += day;
    const days = Math.round((clock.now() - Date.parse(start)) / day);
    const standing = dns.everStood.filter(({ until }) => until === undefined).length;
    plan.say?.(`day ${days}: ${cas.map(({ issued }) => issued).join(' ')} issued, ${standing} records`);
  });
  const limitsMet = cas.flatMap((ca) => ca.limitsMet);
  const figures = {
    ...(await renewalFigures(vault, (name) => refusals.has(name))),
    ...(await recordFigures(vault, dns.everStood, (name) => downOf(plan, providerOf(name)))),
    limitsMet,
  };
  stop.abort();
  let hasEnded = false;
  const ended = Promise.all(jobs).then(() => {
    hasEnded = true;
  });
  // What hangs at a silent CA or provider ends with its own time limit.
  while (!hasEnded) await clock.until(clock.now() + minute);
  await ended;
  return figures;
}

/** Domains of each provider; certificates of one domain have the same provider and many CAs. */
const domainsPerProvider = 40;

function zonesOf(provider: number): string[] {
  return Array.from({ length: domainsPerProvider }, (_, domain) => `d${domain}-p${provider}.test`);
}

/** The number of the provider that has the zone of a name. */
function providerOf(name: string): number {
  return Number(/-p(\d+)\.test$/.exec(name)?.[1]);
}

/** When a provider is down. */
function downOf({ providerDown }: FleetPlan, provider: number): Span | undefined {
  return providerDown?.provider === provider ? spanOf(Date.parse(start), providerDown) : undefined;
}

/** Adds the zones of all providers, and gives the way to Route 53 and to `others`. */
function addZones(plan: FleetPlan, clock: FleetClock, dns: FleetDns, others: Outbound): Outbound {
  for (const [n, { lagsMs, negativeTtlMs }] of plan.providers.entries()) {
    for (const zone of zonesOf(n)) dns.zone(zone, { ...(lagsMs && { lagsMs }), negativeTtlMs });
  }
  let outbound = others;
  for (const [n, { kind, presentMs }] of plan.providers.entries()) {
    if (kind !== 'route53') continue;
    const options = { inSyncMs: presentMs, windowMs: Math.max(second, plan.step), others: outbound };
    ({ outbound } = simulatedRoute53(clock, dns, zonesOf(n), options));
  }
  return outbound;
}

/** Which renewal has stored a record, by a look into the database at the moment when the record appears. */
function ownersIn(t: Pick<TestContext, 'after'>, dataDir: string): OwnerOfRecord {
  const database = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true });
  t.after(() => database.close());
  const find = database.prepare(
    'select renewal_id from acme_challenges where record_name = ? and record_value = ?',
  );
  return (name, value) => (find.get(name, value) as { renewal_id: number } | undefined)?.renewal_id;
}

/** A folder that needs no disk, where the system has one: what is durable is no question here. */
function inMemory(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'vault-fleet-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function spanOf(begin: number, { from, to }: { from: number; to: number }): [number, number] {
  return [begin + from, begin + to];
}

type Parts = {
  readonly cas: readonly FleetCa[];
  readonly dns: FleetDns;
  readonly refusals: Map<string, FleetRefusal>;
  readonly chance: (what: string) => number;
};

async function fill(vault: Vault, plan: FleetPlan, { cas, dns, refusals, chance }: Parts): Promise<void> {
  const { world } = vault;
  const begin = world.now();
  const issuers: { readonly id: number; readonly accountId: number }[] = [];
  for (const [n, ca] of cas.entries()) {
    await acmeIssuer(vault, `ca${n}`, ca.plan.directoryUrl);
    const issuer = await findIssuer(vault.db.reader, `ca${n}`);
    const row = issuer && (await findAcmeIssuer(vault.db.reader, issuer.id));
    if (issuer === undefined || row === undefined) throw new Error('no issuer');
    const account = await ensureAccount(vault, issuer, vault.acme.at(row), forever);
    issuers.push({ id: issuer.id, accountId: account.id });
  }
  for (const [n, provider] of plan.providers.entries()) {
    if (provider.kind === 'route53') await addRoute53Provider(vault, `p${n}`, zonesOf(n));
    else await addSimulatedProvider(vault, `p${n}`, zonesOf(n), dns.provider(provider, downOf(plan, n)));
  }
  const privateKey = await generatePrivateKey('ec256');
  const publicKey = publicKeyOf(privateKey);
  let latest: { readonly names: readonly string[]; readonly due: number } | undefined;
  for (let n = 0; n < plan.certificates; n += 1) {
    const at = Math.floor(chance(`ca ${n}`) * cas.length);
    const ca = cas[at];
    const issuer = issuers[at];
    if (ca === undefined || issuer === undefined) throw new Error('no CA');
    const { lifetime, directoryUrl } = ca.plan;
    if (chance(`broken ${n}`) < plan.broken) {
      refusals.set(`c${n}`, (['rejected', 'limited', 'unvalidated'] as const)[n % 3] ?? 'rejected');
    }
    const anyProvider = Math.floor(chance(`provider ${n}`) * plan.providers.length);
    // Nothing that ends before its DNS provider is up again can be in time.
    const isShort = lifetime < 10 * day && anyProvider === plan.providerDown?.provider;
    const provider = isShort ? (anyProvider + 1) % plan.providers.length : anyProvider;
    const zone = `d${Math.floor(chance(`domain ${n}`) * domainsPerProvider)}-p${provider}.test`;
    const twin = at === 0 && chance(`twin ${n}`) < plan.twins ? latest : undefined;
    const count = Math.max(1, Math.min(plan.maxNames, Math.floor(chance(`names ${n}`) ** -0.9)));
    const names =
      twin?.names ??
      Array.from({ length: count }, (_, k) => (k === 0 ? `c${n}.${zone}` : `n${k}.c${n}.${zone}`));
    const refusal = refusals.get(names[0]?.split('.')[0] ?? '');
    if (refusal !== undefined) refusals.set(`c${n}`, refusal);
    else if (twin !== undefined) refusals.delete(`c${n}`);
    const dueShare = lifetime < 10 * day ? 1 / 2 : 1 / 3;
    const ownDue = begin + chance(`due ${n}`) * Math.min(plan.dueWithin, lifetime * (0.98 - dueShare));
    const due = twin?.due ?? ownDue;
    if (at === 0) latest = { names, due };
    const notBefore = Math.floor((due - lifetime * (1 - dueShare)) / second) * second;
    const leaf = await ca.issueEarlier(names, publicKey, notBefore);
    // A CA that publishes no limits would see the failures of both.
    const fallback =
      twin === undefined && chance(`fallback ${n}`) < 0.5 ? issuers[(at + 1) % issuers.length] : undefined;
    await vault.db.write(async (writer) => {
      const id = await insertCertificate(writer, {
        ...{
          name: `c${n}`,
          domains: toJson(names as readonly Identifier[]),
          key_type: 'ec256',
          issuer_id: issuer.id,
        },
        ...{ auto_renew: 1, reuse_key: 0, created_at: notBefore, fallback_issuer_id: fallback?.id ?? null },
      });
      const row = await findCertificateById(writer, id);
      if (row === undefined) throw new Error('no row');
      const acme = { directoryUrl, accountId: issuer.accountId };
      await addVersion(vault, writer, row, { source: 'acme', leaf, chain: [], privateKey, acme });
      // As if it had been issued then; the vault began to ask the CA about its window long ago.
      await writer
        .updateTable('certificate_versions')
        .set({ created_at: notBefore })
        .where('certificate_id', '=', id)
        .execute();
      const version = await findVersion(writer, id, 1);
      const now = await findCertificateById(writer, id);
      if (now === undefined) throw new Error('no row');
      const moment = nextRenewalAt(now, version, begin);
      await updateCertificate(writer, id, {
        next_renewal_at: moment,
        ari_check_at: begin + Math.floor(chance(`ari ${n}`) * 6 * hour),
      });
    });
    if (n % 1000 === 999) plan.say?.(`${n + 1} certificates`);
  }
}
