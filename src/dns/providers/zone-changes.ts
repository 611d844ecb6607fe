/**
 * Providers that change several record sets of a zone atomically in one request, and reject it if a set differs from
 * the one that the request replaces. The vault therefore trusts the state it wrote last and does not read it again.
 */
import { second } from '../../base/duration.ts';
import type { DnsContext, DnsProvider, DnsProviderError, TxtRecord } from '../dns-provider.ts';
import { pause } from './json-api.ts';

/** The change of the set at one name; undefined if the set does not exist before or after. */
export type SetChange<Held> = {
  readonly name: string;
  readonly before: Held | undefined;
  readonly after: Held | undefined;
};

/** A zone of the account. */
export type ChangeableZone<Held> = {
  /** The same for all records of the zone. */
  readonly id: string;
  readonly read: (name: string) => Promise<Held | undefined>;
  readonly valuesOf: (held: Held) => readonly string[];
  /** A set with these values (at least one) that replaces the current one. */
  readonly withValues: (name: string, held: Held | undefined, values: readonly string[]) => Held;
  /** Undefined if done; the error of the provider if a set differs from the one to replace. */
  readonly apply: (changes: readonly SetChange<Held>[]) => Promise<DnsProviderError | undefined>;
};

type Verb = 'present' | 'remove';

const attemptsForOne = 8;
/** Reading all sets of a large batch repeatedly would be slow; they can be retried one by one. */
const attemptsForMany = 3;
/** How often to read a set again while a value that was just added is missing. */
const rereads = 4;
const firstPause = 0.25 * second;
const maxPause = 4 * second;

/** The operations for such zones; `open` finds the zone of a record. */
export function zoneChangeProvider<Held>(
  context: DnsContext,
  title: string,
  open: (record: TxtRecord, signal: AbortSignal) => Promise<ChangeableZone<Held>>,
): Pick<DnsProvider, 'present' | 'remove'> & { readonly batch: NonNullable<DnsProvider['batch']> } {
  /** The sets as the vault last wrote them, by zone and name. A missing set is assumed not to exist. */
  const left = new Map<string, Held>();

  const change = async (verb: Verb, records: readonly TxtRecord[], signal: AbortSignal): Promise<void> => {
    const zones = new Map<string, { zone: ChangeableZone<Held>; records: TxtRecord[] }>();
    for (const record of records) {
      const zone = await open(record, signal);
      const known = zones.get(zone.id) ?? { zone, records: [] };
      known.records.push(record);
      zones.set(zone.id, known);
    }
    for (const { zone, records: own } of zones.values()) await changeZone(zone, verb, own, signal);
  };

  const changeZone = async (
    zone: ChangeableZone<Held>,
    verb: Verb,
    records: readonly TxtRecord[],
    signal: AbortSignal,
  ): Promise<void> => {
    const byName = Map.groupBy(records, ({ name }) => name);
    const keyOf = (name: string) => `${zone.id} ${name}`;
    const beliefs = new Map([...byName.keys()].map((name) => [name, left.get(keyOf(name))]));
    const attempts = byName.size === 1 ? attemptsForOne : attemptsForMany;
    for (let attempt = 0, looks = 0; ; attempt += 1) {
      const changes: SetChange<Held>[] = [];
      let isLate = false;
      for (const [name, wanted] of byName) {
        const belief = beliefs.get(name);
        const believed = belief === undefined ? [] : zone.valuesOf(belief);
        const isTelling = verb === 'present' ? !includesAll(believed, wanted) : belief !== undefined;
        const before = attempt === 0 && isTelling ? belief : await zone.read(name);
        const held = before === undefined ? [] : zone.valuesOf(before);
        const values = verb === 'present' ? withAll(held, wanted) : without(held, wanted);
        isLate ||= verb === 'remove' && includesAll(believed, wanted) && !includesAll(held, wanted);
        const isSame = values.length === held.length;
        const after = isSame
          ? before
          : values.length === 0
            ? undefined
            : zone.withValues(name, before, values);
        if (after === undefined) left.delete(keyOf(name));
        else left.set(keyOf(name), after);
        if (!isSame) changes.push({ name, before, after });
      }
      const refusal = changes.length === 0 ? undefined : await zone.apply(changes);
      if (refusal === undefined && (!isLate || looks >= rereads)) return;
      for (const name of byName.keys()) left.delete(keyOf(name));
      if (refusal === undefined) looks += 1;
      else if (attempt + 1 >= attempts) throw refusal;
      // If the set differs from the remembered one, read it at once.
      else if (attempt === 0) continue;
      await pause(context, title, Math.min(firstPause * 2 ** attempt, maxPause), signal);
    }
  };

  return {
    present: (record, signal) => change('present', [record], signal),
    remove: (record, signal) => change('remove', [record], signal),
    batch: {
      present: (records, signal) => change('present', records, signal),
      remove: (records, signal) => change('remove', records, signal),
    },
  };
}

/** The purpose of a change, for messages. */
export function purposeOfChanges(changes: readonly { readonly name: string }[]): string {
  const what = changes.length === 1 ? (changes[0]?.name ?? '') : `${changes.length} names`;
  return `change the TXT records of ${what}`;
}

function includesAll(held: readonly string[], wanted: readonly TxtRecord[]): boolean {
  return wanted.every(({ value }) => held.includes(value));
}

function withAll(held: readonly string[], wanted: readonly TxtRecord[]): readonly string[] {
  return [...new Set([...held, ...wanted.map(({ value }) => value)])];
}

function without(held: readonly string[], wanted: readonly TxtRecord[]): readonly string[] {
  return held.filter((value) => wanted.every((record) => record.value !== value));
}
