/**
 * The whole renewal engine: a vault on disk, the scripted CA over HTTP, an in-memory zone, and a clock that jumps to
 * the next poll, so that tests do not sleep.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { hour, minute, second } from '../../../src/base/duration.ts';
import { Secret } from '../../../src/base/secret.ts';
import { findRenewal, type RenewalRow } from '../../../src/db/tables/renewals/renewals.ts';
import type { DnsProvider, TxtRecord } from '../../../src/dns/dns-provider.ts';
import type { DnsResolver } from '../../../src/dns/resolver/dns-resolver.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { addDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { OpenedDnsProviders } from '../../../src/domain/dns-providers/opened-dns-providers.ts';
import { createDnsProviderInput, parseInput } from '../../../src/domain/inputs.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { runClaimed } from '../../../src/jobs/renewal-worker.ts';
import { type ScriptedAcme, type ScriptedAcmeOptions, scriptedAcme } from '../ca/scripted-acme.ts';
import { type TestVault, testVault } from '../test-vault.ts';
import { TestWorld } from '../test-world.ts';
import { acmeIssuer, forever, makeCertificate } from './renewal-fixtures.ts';
import { quietTurn } from './server-activity.ts';

/** Timeouts that run beside other waits: of lease, request, removal or window, hook, propagation, and attempt. */
const background = new Set<number>([20 * second, 30 * second, minute, 2 * minute, 10 * minute, hour]);

/** A test clock that jumps to the end of every foreground wait at the next quiet turn of the event loop. */
export function hastyWorld(): TestWorld {
  const world = new TestWorld();
  const patient = world.sleep;
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    const until = world.now() + ms;
    const slept = patient(ms, signal);
    if (background.has(ms)) return slept;
    void quietTurn(world.turn).then(() => {
      if (signal?.aborted !== true) world.advance(Math.max(0, until - world.now()));
    });
    return slept;
  };
  return Object.assign(world, { sleep });
}

/** An in-memory zone with its records and the operations on it. It fails while `failure` has a message. */
export type MemoryZone = {
  readonly records: Map<string, Set<string>>;
  readonly done: string[];
  failure: string | undefined;
  readonly aliases: Map<string, string>;
  readonly provider: DnsProvider;
  readonly resolver: DnsResolver;
};

export function memoryZone(): MemoryZone {
  const records = new Map<string, Set<string>>();
  const aliases = new Map<string, string>();
  const done: string[] = [];
  const change = (what: string, record: TxtRecord, act: (values: Set<string>) => void) => {
    if (zone.failure !== undefined) throw new Error(zone.failure);
    done.push(`${what} ${record.name}`);
    const values = records.get(record.name) ?? new Set();
    act(values);
    if (values.size === 0) records.delete(record.name);
    else records.set(record.name, values);
  };
  const zone: MemoryZone = {
    ...{ records, done, failure: undefined, aliases },
    provider: {
      present: async (record) => change('present', record, (values) => values.add(record.value)),
      remove: async (record) => change('remove', record, (values) => values.delete(record.value)),
    },
    resolver: {
      txt: async (name) => [...(records.get(name) ?? [])],
      cname: async (name) => aliases.get(name),
      nameServers: async () => [],
      addresses: async () => [],
      negativeTtl: async () => 0,
      configured: '127.0.0.1:53',
    },
  };
  return zone;
}

/** The same vault as a new process would open it, without caches, using this zone. */
export function withZone(vault: Vault, zone: MemoryZone): Vault {
  return { ...vault, dns: new OpenedDnsProviders({ ...vault.dns.context, resolver: zone.resolver }) };
}

/** Adds a DNS provider with these zones that writes to the in-memory zone. */
export async function addMemoryProvider(vault: Vault, zone: MemoryZone, name: string, ...zones: string[]) {
  const input = parseInput(createDnsProviderInput, { name, type: 'exec', zones });
  const secret = new Secret(Buffer.from('command: [/bin/false]\nstyle: lego\n'));
  await addDnsProvider(vault, localCli, input, secret);
  await lendZone(vault, zone);
}

/** Makes all DNS providers of the vault write to the zone. */
export async function lendZone(vault: Vault, zone: MemoryZone): Promise<void> {
  const rows = await vault.db.reader.selectFrom('dns_providers').selectAll().execute();
  for (const row of rows) await vault.dns.get(row, async () => zone.provider);
}

export type Engine = TestVault & {
  readonly ca: ScriptedAcme;
  readonly zone: MemoryZone;
  /** Runs the oldest renewal of the queue and returns its row. */
  readonly work: (signal?: AbortSignal) => Promise<RenewalRow>;
};

/** A vault with the issuer `ca` and, by default, a certificate `www` whose renewal is queued. */
export async function engine(
  t: TestContext,
  options: ScriptedAcmeOptions & {
    readonly dataDir?: string;
    readonly world?: TestWorld;
    /** Zones of a provider called `memory`. */
    readonly zones?: readonly string[];
    /** The options of the certificate; null for none. */
    readonly certificate?: object | null;
  } = {},
): Promise<Engine> {
  const { dataDir, world = hastyWorld(), zones = [], certificate = {}, ...scripted } = options;
  const opened = await testVault(t, { world, ...(dataDir !== undefined && { dataDir }) });
  const zone = memoryZone();
  const vault = withZone(opened.vault, zone);
  const ca = await scriptedAcme(t, { now: world.now, ...scripted });
  await acmeIssuer(vault, 'ca', ca.directoryUrl);
  if (zones.length > 0) await addMemoryProvider(vault, zone, 'memory', ...zones);
  if (certificate !== null) await makeCertificate(vault, 'www', { issuer: 'ca', ...certificate });
  return { ...opened, vault, ca, zone, work: (signal) => workOn(vault, signal) };
}

/** Claims and runs the oldest renewal, waits until its records are removed, and returns its row. */
export async function workOn(vault: Vault, signal: AbortSignal = forever): Promise<RenewalRow> {
  const renewal = await tryWork(vault, signal);
  assert(renewal, 'nothing is queued');
  return renewal;
}

/** As `workOn`; undefined if the queue is empty, or if the renewal was deleted with its certificate. */
export async function tryWork(vault: Vault, signal: AbortSignal = forever): Promise<RenewalRow | undefined> {
  const claimed = await claimRenewal(vault, 'worker');
  if (claimed === undefined) return undefined;
  await runClaimed(vault, claimed, signal);
  await vault.removals.idle();
  return findRenewal(vault.db.reader, claimed.renewal.id);
}

/** The rows of all presented challenges. */
export async function challengeRows({ db }: Vault) {
  return db.reader.selectFrom('acme_challenges').selectAll().orderBy('id').execute();
}

/** The number of certificates that the CA has issued. */
export function issuedBy({ state }: ScriptedAcme): number {
  return [...state.orders.values()].filter(({ leaf }) => leaf !== undefined).length;
}

export function countOf(ca: ScriptedAcme, kind: ScriptedAcme['requests'][number]['kind']): number {
  return ca.kinds().filter((one) => one === kind).length;
}
