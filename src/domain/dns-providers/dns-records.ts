/**
 * DNS records for validations: finds the provider of a name, and presents and removes records with it. Changes to one
 * name never overlap, because many providers replace all values of a name. Changes to different names run a few at a
 * time, or in one request if the provider supports it. Waiting for propagation blocks no other change.
 */
import { mapBounded } from '../../base/bounded.ts';
import { withDeadline } from '../../base/deadline.ts';
import { day, minute, second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { TurnAborted } from '../../base/keyed-mutex.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { type DnsProviderRow, listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import {
  type DnsProvider,
  DnsProviderError,
  type DnsProviderType,
  type TxtRecord,
} from '../../dns/dns-provider.ts';
import { dnsProviderTypes, readProviderConfig } from '../../dns/providers/provider-types.ts';
import { waitUntilVisible } from '../../dns/resolver/propagation.ts';
import { ZoneServers } from '../../dns/resolver/zone-servers.ts';
import { challengeName, followCnames, longestZone } from '../../dns/resolver/zones.ts';
import { didYouMean } from '../closest-names.ts';
import type {
  DnsChangeContext,
  DnsContext,
  DnsLookupContext,
  DnsProviderContext,
} from '../issuance-contexts.ts';
import { dnsSecretOwner, openFor } from '../sealed-secrets.ts';

/** Time limit for a record to appear on the authoritative servers. */
const propagationTimeout = 10 * minute;

/** Time limit of one operation of a provider, unless it has its own. */
const operationTimeout = 2 * minute;

/** Concurrent changes per provider, unless it says otherwise. */
const defaultConcurrency = 4;

/** Records per batch, few enough for every API with batches. */
const maxInBatch = 50;

/** The provider and zone of a record. */
export type Place = {
  readonly provider: DnsProviderRow;
  /** The name of the record, after following CNAMEs. */
  readonly name: string;
  readonly zone: string;
};

/** The provider type. Throws OperatorError for an unknown one. */
export function providerType(type: string): DnsProviderType {
  const known = dnsProviderTypes.get(type);
  if (known !== undefined) return known;
  throw new OperatorError(`unknown DNS provider type "${type}"`, {
    hint: didYouMean(
      type,
      [...dnsProviderTypes.keys()],
      `Use one of: ${[...dnsProviderTypes.keys()].join(', ')}.`,
    ),
  });
}

/** Name servers by zone, cached for one piece of work on many names. */
export function zoneServers(vault: DnsContext): ZoneServers {
  return new ZoneServers(vault.dns.context.resolver);
}

/**
 * The place of the record that validates `domain` (without `*.`): follows CNAMEs and takes the longest zone of all
 * providers. Undefined if no provider has a zone for it. Throws DnsProviderError if a CNAME lookup fails, unless any
 * challenge is possible and no provider has the name itself, because dns-01 is unlikely then.
 */
export async function placeOf(
  vault: DnsLookupContext,
  domain: string,
  signal: AbortSignal,
  servers = zoneServers(vault),
  need: 'dns-01' | 'any challenge' = 'any challenge',
): Promise<Place | undefined> {
  const rows = await listDnsProviders(vault.db.reader);
  if (rows.length === 0) return undefined;
  const providers = rows.map((row) => ({ row, zones: parseJson(row.zones) }));
  const wanted = challengeName(domain);
  const name = await followCnames(servers, wanted, signal).catch((error: unknown) => {
    const isExpected = need === 'dns-01' || longestZone(wanted, providers) !== undefined;
    if (!(error instanceof DnsProviderError) || signal.aborted || isExpected) throw error;
    vault.log.warn(
      { err: error, name: wanted },
      'CNAME lookup failed; assuming that no DNS provider serves the name',
    );
    return undefined;
  });
  if (name === undefined) return undefined;
  const found = longestZone(name, providers);
  return found && { provider: found.provider.row, name, zone: found.zone };
}

/**
 * Presents the records and keeps other values of the same names. Resolves when the provider has them and, if it reports
 * this, its servers do. Throws DnsProviderError; some records may exist then.
 */
export async function presentRecords(
  vault: DnsChangeContext,
  row: DnsProviderRow,
  records: readonly TxtRecord[],
  signal: AbortSignal,
): Promise<void> {
  const provider = await openProvider(vault, row);
  await inTurns(vault, row, records, signal, async (some, deadline) => {
    const [first] = some;
    if (provider.batch !== undefined) await provider.batch.present(some, deadline);
    else if (first !== undefined) await provider.present(first, deadline);
  });
  await provider.settle?.(records, signal);
}

/** Removes the records, in one batch if possible; missing ones are ignored. Throws DnsProviderError. */
export async function removeRecords(
  vault: DnsProviderContext,
  row: DnsProviderRow,
  records: readonly TxtRecord[],
  signal: AbortSignal,
): Promise<void> {
  const { batch, remove } = await openProvider(vault, row);
  if (batch !== undefined) await batch.remove(records, signal);
  else for (const record of records) await remove(record, signal);
}

/** A change by a provider exceeded its time limit. */
export class OperationTimeout extends DnsProviderError {}

/**
 * Runs `work` on all records: on one batch after the other if the provider has batches, otherwise on each record, a few
 * at a time and never two of one name; urgent work goes before what waits for the same provider. The time limit of an
 * operation starts with its turn. After an error nothing more starts, and the first error is thrown. Throws
 * OperationTimeout, and DnsProviderError if `signal` is aborted while waiting.
 */
export async function inTurns<R extends TxtRecord>(
  vault: DnsChangeContext,
  row: DnsProviderRow,
  records: readonly R[],
  signal: AbortSignal,
  work: (records: readonly R[], deadline: AbortSignal) => Promise<void>,
  isUrgent: () => boolean = () => false,
): Promise<void> {
  const { batch, limitsItself, concurrency = defaultConcurrency } = await openProvider(vault, row);
  const key = `dns:${row.id}`;
  const turn = () => ({ signal, isUrgent: isUrgent() });
  const timed = async (some: readonly R[]) => {
    if (limitsItself === true) return work(some, signal);
    return withDeadline(vault.world, operationTimeout, signal, async (deadline) => {
      try {
        await work(some, deadline.signal);
      } catch (error) {
        if (deadline.ended() !== 'timeout') throw error;
        const what = some.length === 1 ? some[0]?.name : `${some.length} records`;
        throw new OperationTimeout(
          `DNS provider ${row.name} did not change ${what} within ${operationTimeout / second} s`,
          { cause: error },
        );
      }
    });
  };
  try {
    if (batch !== undefined) {
      for (let at = 0; at < records.length; at += maxInBatch) {
        const some = records.slice(at, at + maxInBatch);
        await vault.turns.take(key, () => timed(some), turn());
      }
      return;
    }
    await mapBounded(concurrency, records, (record) =>
      vault.turns.take(
        `${key} ${record.name}`,
        () => vault.turns.take(key, () => timed([record]), { ...turn(), atOnce: concurrency }),
        turn(),
      ),
    );
  } catch (error) {
    if (!(error instanceof TurnAborted)) throw error;
    throw new DnsProviderError(`canceled while waiting for DNS provider ${row.name}`, {
      cause: signal.reason,
    });
  }
}

/**
 * Waits until the records are visible to the CA: up to a day for records created by hand, otherwise ten minutes. Throws
 * a DnsProviderError that lists what each server returns.
 */
export async function awaitVisible(
  vault: DnsProviderContext,
  row: DnsProviderRow,
  records: readonly TxtRecord[],
  signal: AbortSignal,
): Promise<void> {
  const timeoutMs = (await isByHand(vault, row)) ? day : propagationTimeout;
  await waitUntilVisible(vault.dns.context, records, { timeoutMs }, signal);
}

/** Whether the records of this provider are created by hand. */
export async function isByHand(vault: DnsProviderContext, row: DnsProviderRow): Promise<boolean> {
  return (await openProvider(vault, row)).byHand === true;
}

/**
 * The files of this machine that run as code for this provider. Throws DnsProviderError if its settings are invalid.
 */
export async function programsOf(vault: DnsProviderContext, row: DnsProviderRow): Promise<readonly string[]> {
  return (await openProvider(vault, row)).programs ?? [];
}

function openProvider(vault: DnsProviderContext, row: DnsProviderRow): Promise<DnsProvider> {
  return vault.dns.get(row, async () => {
    const type = providerType(row.type);
    const secret = openFor(vault, dnsSecretOwner(row.id), row.sealed_secret).expose().toString('utf8');
    return type.create(await readProviderConfig(type, secret), vault.dns.context);
  });
}
