/** The jobs of clients that install certificates, and what they last reported. */
import type { Generated } from 'kysely';

export type StepResult = 'ok' | 'failed';

/** The states that need a person. */
export type NotifiedState = 'failing' | 'outdated' | 'silent';

export type DeploymentsTable = {
  id: Generated<number>;
  certificate_id: number;
  /** The API key that reports. */
  api_key_id: number;
  /** The client's id for it, unique per certificate. */
  name: string;
  host: string;
  job: string;
  destination: string;
  /** null if nothing is installed. */
  version: number | null;
  fingerprint_sha256: string | null;
  /** null if there is no such step, or if it has not run yet. Its output is one line. */
  reload: StepResult | null;
  reload_output: string | null;
  verify: StepResult | null;
  verify_output: string | null;
  /** Why the last run failed before the reload. */
  error: string | null;
  next_run_at: number | null;
  client_version: string | null;
  created_at: number;
  /** When version, fingerprint or a result last changed. */
  changed_at: number;
  last_seen_at: number;
  /** From then on there was no report for two schedules. */
  silent_at: number;
  /** The state that was last notified; null for `current`. */
  notified_state: Generated<NotifiedState | null>;
};
