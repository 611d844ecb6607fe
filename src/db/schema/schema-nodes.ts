/**
 * The tables of the nodes that serve one database. Empty where only one machine can use it. Times are those of the
 * database's clock.
 */

export type NodesTable = {
  /** Random, from the start of the server; the same until it stops. */
  id: string;
  host: string;
  version: string;
  started_at: number;
  seen_at: number;
  /** Milliseconds by which the clock of the node is ahead of that of the database. */
  clock_offset: number;
  /** JSON (domain/nodes/server-record.ts). */
  settings: string;
  /** JSON: the ids of the master keys that the node finds. */
  master_keys: string;
};

export type JobLeasesTable = {
  job: string;
  node_id: string;
  /** Greater with each new holder. */
  fence: number;
  expires_at: number;
};
