/** Providers that keep TXT records one by one, each with an id: how a value is added there and taken away. */
import type { DnsProvider, TxtRecord } from '../dns-provider.ts';

/** The TXT records at one name. */
export type RecordList = {
  readonly list: () => Promise<readonly { readonly id: string; readonly value: string }[]>;
  /** Makes one and gives its id; undefined where the provider says that it is there already. */
  readonly create: (value: string) => Promise<string | undefined>;
  /** Succeeds where it is gone already. */
  readonly delete: (id: string) => Promise<void>;
  /** Makes changes visible, where that is a step of its own. */
  readonly publish?: () => Promise<void>;
};

/**
 * A provider on such lists. Ids of new records are remembered until they are removed, for lists that show a record only
 * a while after it was made.
 */
export function recordListProvider(
  open: (record: TxtRecord, signal: AbortSignal) => Promise<RecordList>,
): DnsProvider {
  const made = new Map<string, Set<string>>();
  const keyOf = ({ name, value }: TxtRecord) => `${name} ${value}`;
  const matching = async (records: RecordList, { value }: TxtRecord) =>
    (await records.list()).filter((listed) => listed.value === value).map(({ id }) => id);

  return {
    present: async (record, signal) => {
      const records = await open(record, signal);
      if ((await matching(records, record)).length === 0) {
        const id = await records.create(record.value);
        const key = keyOf(record);
        if (id !== undefined) made.set(key, new Set([...(made.get(key) ?? []), id]));
      }
      // Also for a record that was there: whoever made it may have been stopped before this step.
      await records.publish?.();
    },
    remove: async (record, signal) => {
      const records = await open(record, signal);
      const key = keyOf(record);
      const ids = new Set([...(made.get(key) ?? []), ...(await matching(records, record))]);
      for (const id of ids) {
        await records.delete(id);
        made.get(key)?.delete(id);
      }
      made.delete(key);
      if (ids.size > 0) await records.publish?.();
    },
  };
}
