/**
 * Records for validations: which provider a name belongs to, and presenting and removing records through it. Changes of one
 * name never overlap, because many providers replace the values of a name as a whole; those of different names do, a few
 * at a time, or in one request if the provider supports it. No turn includes a wait for propagation.
 */
import { mapBounded } from '../../base/bounded.ts';
import { withDeadline } from '../../base/deadline.ts';
import { day, minute, second } from '../../base/duration.ts';
import { TurnAborted } from '../../base/keyed-mutex.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { type DnsProviderRow, listDnsProviders } from '../../db/tables/dns-providers.ts';
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
import { dnsSecretOwner, openFor } from '../sealed-secrets.ts';
import type {
  DnsChangeContext,
  DnsContext,
  DnsLookupContext,
  DnsProviderContext,
} from './issuance-contexts.ts';

/** How long a record may take until the authoritative servers show it. */
const propagationPatience = 10 * minute;

/** What one operation of a provider that does not limit itself may take. */
const operationPatience = 2 * minute;

/** Names that a provider changes at once, unless it says otherwise. */
const usualConcurrency = 4;

/** Records of one batch: small enough for every API that has batches. */
const mostInBatch = 50;

/** Where a name's record belongs. */
export type Place = {
  readonly provider: DnsProviderRow;
  /** Of the record, after CNAMEs were followed. */
  readonly name: string;
  readonly zone: string;
};

/** The kind of provider. Throws OperatorError for one that this vault does not know. */
export function providerType(type: string): DnsProviderType {
  const known = dnsProviderTypes.get(type);
  if (known !== undefined) return known;
  throw new OperatorError(`there is no kind of DNS provider called "${type}"`, {
    hint: didYouMean(
      type,
      [...dnsProviderTypes.keys()],
      `Use one of: ${[...dnsProviderTypes.keys()].join(', ')}.`,
    ),
  });
}

/** For one piece of work about many names: finds the name servers of each zone once. */
export function zoneServers(vault: DnsContext): ZoneServers {
  return new ZoneServers(vault.dns.context.resolver);
}

/**
 * Where the record that validates `domain` (without `*.`) belongs: its CNAMEs are followed, and the longest zone of all
 * providers wins. Undefined where no provider has a zone for it. Throws DnsProviderError where a CNAME cannot be looked up,
 * unless any challenge would do and no provider has the name without the CNAME: then dns-01 is not expected.
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
  const providers = rows.map((row) => ({ row, zones: JSON.parse(row.zones) as string[] }));
  const wanted = challengeName(domain);
  const name = await followCnames(servers, wanted, signal).catch((error: unknown) => {
    const isExpected = need === 'dns-01' || longestZone(wanted, providers) !== undefined;
    if (!(error instanceof DnsProviderError) || signal.aborted || isExpected) throw error;
    vault.log.warn(
      { err: error, name: wanted },
      'CNAME look-up failed; assuming that no DNS provider has the name',
    );
    return undefined;
  });
  if (name === undefined) return undefined;
  const found = longestZone(name, providers);
  return found && { provider: found.provider.row, name, zone: found.zone };
}

/**
 * Presents the records; other values at their names stay. Resolves when the provider has them, and where it can tell, when
 * its own servers do. Throws DnsProviderError; some of the records may then be there.
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

/** Removes the records in one change, or one record; those that are gone already are fine. Throws DnsProviderError. */
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

/** A change of a provider took longer than it may. */
export class OperationTimeout extends DnsProviderError {}

/**
 * Runs `work` on all records when their turns come: on batches one after the other where the provider has batches, else on
 * each record, a few at a time and never two at one name; urgent work goes before what waits for the same provider.
 * The deadline of an operation begins with its turn. After a failure no more is begun, and the first failure is thrown. Throws OperationTimeout, and DnsProviderError where
 * `signal` is aborted while a turn is waited for.
 */
export async function inTurns<R extends TxtRecord>(
  vault: DnsChangeContext,
  row: DnsProviderRow,
  records: readonly R[],
  signal: AbortSignal,
  work: (records: readonly R[], deadline: AbortSignal) => Promise<void>,
  isUrgent: () => boolean = () => false,
): Promise<void> {
  const { batch, limitsItself, concurrency = usualConcurrency } = await openProvider(vault, row);
  const key = `dns:${row.id}`;
  const turn = () => ({ signal, isUrgent: isUrgent() });
  const timed = async (some: readonly R[]) => {
    if (limitsItself === true) return work(some, signal);
    return withDeadline(vault.world, operationPatience, signal, async (deadline) => {
      try {
        await work(some, deadline.signal);
      } catch (error) {
        if (deadline.ended() !== 'timeout') throw error;
        const what = some.length === 1 ? some[0]?.name : `${some.length} records`;
        throw new OperationTimeout(
          `${row.name} did not change ${what} within ${operationPatience / second} s`,
          { cause: error },
        );
      }
    });
  };
  try {
    if (batch !== undefined) {
      for (let at = 0; at < records.length; at += mostInBatch) {
        const some = records.slice(at, at + mostInBatch);
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
    throw new DnsProviderError(`the wait for ${row.name} was given up`, { cause: signal.reason });
  }
}

/**
 * Waits until the records are visible where the CA will look for them: a day for records created by hand,
 * otherwise ten minutes. Throws a DnsProviderError that lists what each server shows.
 */
export async function awaitVisible(
  vault: DnsProviderContext,
  row: DnsProviderRow,
  records: readonly TxtRecord[],
  signal: AbortSignal,
): Promise<void> {
  const timeoutMs = (await isByHand(vault, row)) ? day : propagationPatience;
  await waitUntilVisible(vault.dns.context, records, { timeoutMs }, signal);
}

/** Whether somebody has to make the provider's records by hand. */
export async function isByHand(vault: DnsProviderContext, row: DnsProviderRow): Promise<boolean> {
  return (await openProvider(vault, row)).byHand === true;
}

function openProvider(vault: DnsProviderContext, row: DnsProviderRow): Promise<DnsProvider> {
  return vault.dns.get(row, async () => {
    const type = providerType(row.type);
    const secret = openFor(vault, dnsSecretOwner(row.id), row.sealed_secret).expose().toString('utf8');
    return type.create(await readProviderConfig(type, secret), vault.dns.context);
  });
}
