/**
 * Providers that store all TXT values of a name as one set: how to add and remove a value without losing concurrent
 * changes by others.
 */
import { second } from '../../base/duration.ts';
import type { DnsContext, DnsProvider, DnsProviderError, TxtRecord } from '../dns-provider.ts';
import { pause } from './json-api.ts';

/** The set as it was read; `state` lets the provider detect that another client changed it since. */
export type RecordSetState<State> = { readonly values: readonly string[]; readonly state: State };

/** The set at one name. */
export type RecordSet<State> = {
  readonly read: () => Promise<RecordSetState<State>>;
  /** Undefined if done; the error of the provider if another client changed the set after it was read. */
  readonly add: (value: string, before: RecordSetState<State>) => Promise<DnsProviderError | undefined>;
  /** Like `add`. The value is in the set that was read. */
  readonly remove: (value: string, before: RecordSetState<State>) => Promise<DnsProviderError | undefined>;
};

const attempts = 8;
/** How often to read the set again while a value that was just added is missing. */
const rereads = 4;
const firstPause = 0.25 * second;
const maxPause = 4 * second;

/** A provider for such sets. Changes at one name run one after the other. */
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

  /** Retries until `change` succeeds; it returns the reason why it did not. */
  const persist = async (
    signal: AbortSignal,
    change: (attempt: number) => Promise<DnsProviderError | 'unseen' | undefined>,
  ): Promise<void> => {
    for (let attempt = 0; ; attempt += 1) {
      const obstacle = await change(attempt);
      if (obstacle === undefined) return;
      if (obstacle !== 'unseen' && attempt + 1 >= attempts) throw obstacle;
      await pause(context, title, Math.min(firstPause * 2 ** attempt, maxPause), signal);
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
