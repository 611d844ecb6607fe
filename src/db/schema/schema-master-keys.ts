/** The table of master keys as the queries see it: names of keys, never a key. */

export type MasterKeysTable = {
  /** The key's name, in hexadecimal. */
  id: string;
  /** `previous` while a rotation goes on: blobs of it may be left. */
  state: 'current' | 'previous' | 'retired';
  since: number;
  retired_at: number | null;
};
