/**
 * A fleet of certificates on a clock of its own: the renewal engine whole, with its jobs, on a real database, over several
 * CAs and DNS providers of which some are slow, down for a while, or refuse for ever. Counts what became of it.
 */
import { hash } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { day, hour, minute, second } from '../../src/base/duration.ts';
import { Secret } from '../../src/base/secret.ts';
import { generatePrivateKey, publicKeyOf } from '../../src/crypto/key-pair.ts';
import { findVersion } from '../../src/db/tables/certificate-versions.ts';
import {
  findCertificateById,
  insertCertificate,
  updateCertificate,
} from '../../src/db/tables/certificates.ts';
import { findAcmeIssuer, findIssuer } from '../../src/db/tables/issuers.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { createDnsProviderInput, parseInput } from '../../src/domain/inputs.ts';
import { ensureAccount } from '../../src/domain/issuance/acme-account.ts';
import { AcmeClients } from '../../src/domain/issuance/acme-clients.ts';
import { addDnsProvider } from '../../src/domain/issuance/dns-providers.ts';
import { OpenedDnsProviders } from '../../src/domain/issuance/opened-dns-providers.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { nextRenewalAt } from '../../src/domain/versions/renewal-plan.ts';
import { addVersion } from '../../src/domain/versions/versions.ts';
import { runChallengeCleaner } from '../../src/jobs/challenge-cleaner.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../src/jobs/renewal-worker.ts';
import { runWindowWatcher } from '../../src/jobs/window-watcher.ts';
import { type Outbound, OutboundError } from '../../src/net/outbound-http.ts';
import { FleetCa, type FleetCaPlan, type FleetRefusal } from './fleet-ca.ts';
import { FleetClock } from './fleet-clock.ts';
import { FleetDns, type FleetProviderPlan } from './fleet-dns.ts';
import { makeChain } from './private-chain.ts';
import { acmeIssuer, forever } from './renewal-fixtures.ts';
import { testVault } from './test-vault.ts';
import type { TestWorld } from './test-world.ts';

export type FleetPlan = {
  readonly certificates: number;
  /** All of them are due within this time from the beginning, evenly. */
  readonly dueWithin: number;
  /** How long it runs. */
  readonly runs: number;
  /** The share of certificates that can never be renewed. */
  readonly broken: number;
  readonly mostNames: number;
  readonly cas: readonly Omit<FleetCaPlan, 'down'>[];
  /** Which CA is down, and from when to when after the beginning. */
  readonly caDown?: { readonly ca: number; readonly from: number; readonly to: number };
  readonly providers: readonly Omit<FleetProviderPlan, 'down'>[];
  readonly providerDown?: { readonly provider: number; readonly from: number; readonly to: number };
  readonly seed: string;
  /** The least by which the clock moves; a quarter of a minute without it. */
  readonly step?: number;
  readonly say?: (line: string) => void;
};

export type FleetFigures = {
  /** Healthy certificates, and how many of them were renewed in time: before half of what was left had passed. */
  readonly healthy: number;
  readonly due: number;
  readonly inTime: number;
  readonly late: number;
  readonly expired: number;
  /** Of what was left at the due moment, the largest share that passed, and what 99 of 100 stayed below. */
  readonly worstShare: number;
  readonly share99: number;
  /** Hours from due to renewed: the middle one and the longest. */
  readonly medianHours: number;
  readonly longestHours: number;
  readonly limitsMet: number;
  readonly attempts: number;
  /** Records that stood for longer than an hour after the end, and the longest that one stood, in minutes. */
  readonly recordsLeft: number;
  readonly longestRecordMinutes: number;
};

const start = '2026-11-21T00:00:00Z';
const usualStep = 15 * second;

/** Runs the whole simulation. */
export async function simulateFleet(t: Pick<TestContext, 'after'>, plan: FleetPlan): Promise<FleetFigures> {
  const clock = new FleetClock(start, plan.step ?? usualStep);
  const chance = (what: string) => hash('sha256', `${plan.seed}/${what}`, 'buffer').readUInt32BE() / 2 ** 32;
  const opened = await testVault(t, { world: clock as unknown as TestWorld, dataDir: inMemory(t) });
  const dns = new FleetDns(clock);
  const chain = await makeChain();
  const refusals = new Map<string, FleetRefusal>();
  const cas = plan.cas.map((ca, n) => {
    const down = plan.caDown?.ca === n ? spanOf(clock.now(), plan.caDown) : undefined;
    return new FleetCa({ ...ca, down }, { world: clock, chain, refusals, txt: (name) => dns.txt(name) });
  });
  const outbound: Outbound = async (request) => {
    const origin = new URL(request.url).origin;
    const ca = cas.find(({ plan: { directoryUrl } }) => new URL(directoryUrl).origin === origin);
    if (ca === undefined) throw new OutboundError('unreachable', `nobody is at ${origin}`);
    return ca.answer(request);
  };
  const { log } = opened.vault;
  const vault: Vault = {
    ...opened.vault,
    outbound,
    acme: new AcmeClients({ world: clock, outbound, log }),
    dns: new OpenedDnsProviders({ ...opened.vault.dns.context, outbound, resolver: dns.resolver }),
  };
  await fill(vault, plan, { cas, dns, refusals, chance });
  opened.log.lines.length = 0;
  const stop = new AbortController();
  const jobs = [runRenewalScheduler, runRenewalWorker, runWindowWatcher, runChallengeCleaner].map((job) =>
    job(vault, stop.signal),
  );
  let nextDay = clock.now() + day;
  let recordsLeft = 0;
  let nextLook = clock.now() + hour;
  await clock.until(Date.parse(start) + plan.runs, () => {
    // Only what is told at the end counts; kept lines would fill the memory.
    opened.log.lines.length = 0;
    if (clock.now() >= nextLook) {
      nextLook += hour;
      recordsLeft = Math.max(recordsLeft, dns.olderThan(2 * hour));
    }
    if (clock.now() < nextDay) return;
    nextDay += day;
    plan.say?.(
      `day ${Math.round((clock.now() - Date.parse(start)) / day)}: ${cas.map(({ issued }) => issued).join(' ')} issued`,
    );
  });
  const figures = await figuresOf(vault, refusals);
  stop.abort();
  let hasEnded = false;
  const ended = Promise.all(jobs).then(() => {
    hasEnded = true;
  });
  // What hangs at a silent CA or provider ends with its own time limit.
  while (!hasEnded) await clock.until(clock.now() + minute);
  await ended;
  const limitsMet = cas.reduce((sum, ca) => sum + ca.limitsMet, 0);
  return { ...figures, limitsMet, recordsLeft, longestRecordMinutes: dns.longest / minute };
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

/** Domains of each provider; certificates of one domain have the same provider and many CAs. */
const domainsPerProvider = 40;

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
    const zones = Array.from({ length: domainsPerProvider }, (_, d) => `d${d}-p${n}.test`);
    const secret = new Secret(Buffer.from('command: [/bin/false]\nstyle: lego\n'));
    await addDnsProvider(
      vault,
      localCli,
      parseInput(createDnsProviderInput, { name: `p${n}`, type: 'exec', zones }),
      secret,
    );
    const rows = await vault.db.reader
      .selectFrom('dns_providers')
      .selectAll()
      .where('name', '=', `p${n}`)
      .execute();
    const down = plan.providerDown?.provider === n ? spanOf(begin, plan.providerDown) : undefined;
    for (const row of rows) await vault.dns.get(row, async () => dns.provider({ ...provider, down }));
  }
  const privateKey = await generatePrivateKey('ec256');
  const publicKey = publicKeyOf(privateKey);
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
    const count = Math.max(1, Math.min(plan.mostNames, Math.floor(chance(`names ${n}`) ** -0.9)));
    const names = Array.from({ length: count }, (_, k) =>
      k === 0 ? `c${n}.${zone}` : `n${k}.c${n}.${zone}`,
    );
    const dueShare = lifetime < 10 * day ? 1 / 2 : 1 / 3;
    const due = begin + chance(`due ${n}`) * Math.min(plan.dueWithin, lifetime * (0.98 - dueShare));
    const notBefore = Math.floor((due - lifetime * (1 - dueShare)) / second) * second;
    const leaf = await ca.issueEarlier(names, publicKey, notBefore);
    const fallback = chance(`fallback ${n}`) < 0.5 ? issuers[(at + 1) % issuers.length] : undefined;
    await vault.db.write(async (writer) => {
      const id = await insertCertificate(writer, {
        ...{ name: `c${n}`, domains: JSON.stringify(names), key_type: 'ec256', issuer_id: issuer.id },
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

async function figuresOf(
  { db, world }: Vault,
  refusals: ReadonlyMap<string, FleetRefusal>,
): Promise<Omit<FleetFigures, 'limitsMet' | 'recordsLeft' | 'longestRecordMinutes'>> {
  const certificates = await db.reader.selectFrom('certificates').select(['id', 'name']).execute();
  const versions = await db.reader
    .selectFrom('certificate_versions')
    .select(['certificate_id', 'version', 'not_after', 'created_at'])
    .orderBy('id')
    .execute();
  const renewals = await db.reader
    .selectFrom('renewals')
    .select(['certificate_id', 'requested_at'])
    .orderBy('id')
    .execute();
  const shares: number[] = [];
  const hours: number[] = [];
  let expired = 0;
  const healthy = certificates.filter(({ name }) => !refusals.has(name));
  const versionsOf = Map.groupBy(versions, ({ certificate_id }) => certificate_id);
  const renewalsOf = Map.groupBy(renewals, ({ certificate_id }) => certificate_id);
  for (const { id } of healthy) {
    const own = versionsOf.get(id) ?? [];
    const requests = renewalsOf.get(id) ?? [];
    for (const [at, version] of own.entries()) {
      const due = requests.find(({ requested_at }) => requested_at >= version.created_at)?.requested_at;
      if (due === undefined) continue;
      const renewedAt = own[at + 1]?.created_at ?? world.now();
      if (renewedAt > version.not_after) expired += 1;
      const isUnderWay = own[at + 1] === undefined;
      const share = (renewedAt - due) / (version.not_after - due);
      // What became due a moment ago has time left.
      if (isUnderWay && share < 0.5) continue;
      shares.push(share);
      hours.push((renewedAt - due) / hour);
    }
  }
  const ordered = shares.toSorted((one, other) => one - other);
  const inTime = shares.filter((share) => share < 0.5).length;
  return {
    ...{ healthy: healthy.length, due: shares.length, inTime, late: shares.length - inTime, expired },
    worstShare: ordered.at(-1) ?? 0,
    share99: ordered[Math.floor(ordered.length * 0.99)] ?? 0,
    medianHours: hours.toSorted((one, other) => one - other)[Math.floor(hours.length / 2)] ?? 0,
    longestHours: Math.max(0, ...hours),
    attempts: renewals.length,
  };
}
