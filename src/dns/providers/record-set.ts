/**
 * Providers that keep all TXT values of a name as one set: how a value is added and taken away without losing what others
 * put there at the same time.
 */
import { second } from '../../base/duration.ts';
import type { DnsContext, DnsProvider, DnsProviderError, TxtRecord } from '../dns-provider.ts';
import { pause } from './json-api.ts';

/** The set as it was read; `state` is what the provider needs to notice that somebody changed it since. */
export type RecordSetState<State> = { readonly values: readonly string[]; readonly state: State };

/** The set at one name. */
export type RecordSet<State> = {
  readonly read: () => Promise<RecordSetState<State>>;
  /** Undefined when done; the provider's refusal where the set was changed by somebody since it was read. */
  readonly add: (value: string, before: RecordSetState<State>) => Promise<DnsProviderError | undefined>;
  /** As `add`. The value is in the set that was read. */
  readonly remove: (value: string, before: RecordSetState<State>) => Promise<DnsProviderError | undefined>;
};

const attempts = 8;
/** How often a set is read again in which a value that was just put there does not show yet. */
const rereads = 4;
const firstPause = 0.25 * second;
const longestPause = 4 * second;

/** A provider on such sets. Changes at one name go one after the other. */
export function recordSetProvider<State>(
  context: DnsContext,
  title: string,
  open: (record: TxtRecord, signal: AbortSignal) => Promise<RecordSet<State>>,
): DnsProvider {
  const written = new Set<string>();
  const turns = new Map<string, Promise<void>>();
  const keyOf = ({ name, value }: TxtRecord) => `${name} ${value}`;

  const inTurn = async (name: string, work: () => Promise<void>): Promise<void> => {
    const before = turns.get(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    turns.set(name, promise);
    await before;
    try {
      await work();
    } finally {
      if (turns.get(name) === promise) turns.delete(name);
      resolve();
    }
  };

  /** Until `change` is through, which says why it is not yet. */
  const persist = async (
    signal: AbortSignal,
    change: (attempt: number) => Promise<DnsProviderError | 'unseen' | undefined>,
  ): Promise<void> => {
    for (let attempt = 0; ; attempt += 1) {
      const obstacle = await change(attempt);
      if (obstacle === undefined) return;
      if (obstacle !== 'unseen' && attempt + 1 >= attempts) throw obstacle;
      await pause(context, title, Math.min(firstPause * 2 ** attempt, longestPause), signal);
    }
  };

  return {
    present: (record, signal) =>
      inTurn(record.name, async () => {
        const set = await open(record, signal);
        await persist(signal, async () => {
          const before = await set.read();
          if (before.values.includes(record.value)) return undefined;
          return await set.add(record.value, before);
        });
        written.add(keyOf(record));
      }),
    remove: (record, signal) =>
      inTurn(record.name, async () => {
        const set = await open(record, signal);
        const isExpected = written.has(keyOf(record));
        await persist(signal, async (attempt) => {
          const before = await set.read();
          if (before.values.includes(record.value)) return await set.remove(record.value, before);
          return isExpected && attempt < rereads ? 'unseen' : undefined;
        });
        written.delete(keyOf(record));
      }),
  };
}
