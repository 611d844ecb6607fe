/** Types of API responses about deploy targets. Only the fields that the pages use. */

/** A place on which the vault installs certificates. */
export type DeployTargetSummary = {
  readonly name: string;
  readonly type: string;
  readonly host: string;
  readonly counts: { readonly current: number; readonly waiting: number; readonly failing: number };
  readonly changed_at: string;
};

export type TargetCertificate = {
  readonly certificate: string;
  readonly destination: string;
  readonly state: 'current' | 'waiting' | 'failing';
  readonly version: number | null;
  readonly current_version: number | null;
  readonly attempts: number;
  readonly error: string | null;
  readonly next_attempt_at: string | null;
};

export type DeployTarget = DeployTargetSummary & { readonly certificates: readonly TargetCertificate[] };
