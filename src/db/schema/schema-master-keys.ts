/** The table of master keys as queries see it: names of keys, never a key. */

export type MasterKeysTable = {
  /** The name of the key, in hexadecimal. */
  id: string;
  /** `previous` during a rotation: blobs sealed by it may remain. */
  state: 'current' | 'previous' | 'retired';
  since: number;
  retired_at: number | null;
};
