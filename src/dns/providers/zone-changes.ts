/**
 * Providers that change several record sets of a zone in one request, all or none of them, and refuse it where a set is
 * not the one that the request says it replaces. So what was left there last is believed and not read again.
 */
import { second } from '../../base/duration.ts';
import type { DnsContext, DnsProvider, DnsProviderError, TxtRecord } from '../dns-provider.ts';
import { pause } from './json-api.ts';

/** What becomes of the set at one name; undefined where there is none. */
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
  /** The set with these values, at least one, in place of the current ones. */
  readonly withValues: (name: string, held: Held | undefined, values: readonly string[]) => Held;
  /** Undefined when done; the provider's refusal where a set is another than it should replace. */
  readonly apply: (changes: readonly SetChange<Held>[]) => Promise<DnsProviderError | undefined>;
};

type Verb = 'present' | 'remove';

const attemptsForOne = 8;
/** Reading every set of a large batch again and again would be slow; each of them can be tried by itself. */
const attemptsForMany = 3;
/** How often a set is read again in which a value that was just put there does not show yet. */
const rereads = 4;
const firstPause = 0.25 * second;
const longestPause = 4 * second;

/** The operations on such zones; `open` finds the zone of a record. */
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
      await pause(context, title, Math.min(firstPause * 2 ** attempt, longestPause), signal);
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

/** For messages: what a change is for. */
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
