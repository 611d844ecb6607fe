/** Where certificates are installed: jobs of clients with their last report, and targets of the vault. */
import type { Generated } from 'kysely';

export type StepResult = 'ok' | 'failed';

/** The states that need a person. */
export type NotifiedState = 'failing' | 'outdated' | 'silent';

export type DeploymentsTable = {
  id: Generated<number>;
  certificate_id: number;
  /** The API key that reports; null if the vault itself installs. */
  api_key_id: number | null;
  /** The target that the vault installs on; null if a client reports. */
  deploy_target_id: Generated<number | null>;
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

/** Places that the vault brings certificates to. */
export type DeployTargetsTable = {
  id: Generated<number>;
  name: string;
  type: string;
  /** For lists, without secrets. */
  host: string;
  /** With the credentials. */
  sealed_settings: Buffer;
  created_at: number;
  changed_at: number;
};

/** The certificates of a target. What is installed there is in its row of `deployments`. */
export type DeployTargetCertificatesTable = {
  id: Generated<number>;
  deploy_target_id: number;
  certificate_id: number;
  /** For lists, without secrets. */
  destination: string;
  /** How the target names what was installed, if it chose that itself. */
  remote_id: Generated<string | null>;
  /** Failed attempts in a row, and why the last of them failed. */
  attempts: Generated<number>;
  error: Generated<string | null>;
  /** When to install next, or to check what is installed; null for never. */
  due_at: number | null;
};
