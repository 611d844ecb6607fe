/** Providers that store each TXT record separately, with an id: how to add and remove a value. */
import type { DnsProvider, TxtRecord } from '../dns-provider.ts';

/** The TXT records at one name. */
export type RecordList = {
  readonly list: () => Promise<readonly { readonly id: string; readonly value: string }[]>;
  /** Creates a record and returns its id; undefined if the provider reports that it exists. */
  readonly create: (value: string) => Promise<string | undefined>;
  /** Succeeds if the record does not exist. */
  readonly delete: (id: string) => Promise<void>;
  /** Publishes changes, if the provider has a separate step for that. */
  readonly publish?: () => Promise<void>;
};

/**
 * A provider for such lists. Ids of new records are remembered until they are removed, because some lists show a record
 * only some time after its creation.
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
      // Also for an existing record: its creator may have been stopped before this step.
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
