/** Emergency replacements: certificates that are reissued, and whose old versions are then revoked. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';

export type ReplacementReason = 'superseded' | 'ca-compromised' | 'key-compromised';

/**
 * `waiting`: to be renewed. `renewing`: the renewal is open. `issued`: the new version is there, not yet live
 * everywhere. `live`: every place that is known has it. `revoked`: the old version is. `failed`: the last attempt
 * failed, and is repeated unless `finished_at` is set.
 */
export type ReplacementState = 'waiting' | 'renewing' | 'issued' | 'live' | 'revoked' | 'failed' | 'canceled';

export type ReplacementsTable = {
  id: Generated<number>;
  reason: ReplacementReason;
  /** How the certificates were selected: one of these three is set. */
  issuer: string | null;
  labels: Json<string[]> | null;
  certificate: string | null;
  /** As in the audit log. */
  created_by: string;
  created_at: number;
  /** From then on, old versions are revoked as soon as there are new ones. */
  deadline_at: number;
  finished_at: number | null;
  canceled_by: string | null;
};

export type ReplacementCertificatesTable = {
  id: Generated<number>;
  replacement_id: number;
  /** null once the certificate was deleted. */
  certificate_id: number | null;
  name: string;
  state: ReplacementState;
  /** The version to revoke, which was current at the beginning. */
  old_version: number;
  new_version: number | null;
  renewal_id: number | null;
  /** Deployments and endpoints that have the new version, and all that are known. */
  live: Generated<number>;
  places: Generated<number>;
  /** Attempts in a row that failed. */
  attempts: Generated<number>;
  error: string | null;
  /** When its next step is due. */
  next_at: number;
  changed_at: number;
  finished_at: number | null;
};
