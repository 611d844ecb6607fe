/** Types of API responses about emergency replacements. Only the fields that the pages use. */

/** From the one that needs attention first. */
export const replacedStates = [
  ...(['failed', 'waiting', 'renewing', 'issued'] as const),
  ...(['live', 'revoked', 'canceled'] as const),
] as const;

export type ReplacedState = (typeof replacedStates)[number];

export type ReplacementReason = 'superseded' | 'ca-compromised' | 'key-compromised';

export type Replacement = {
  readonly id: number;
  readonly state: 'running' | 'finished' | 'canceled';
  readonly reason: ReplacementReason;
  /** How the certificates were selected: by one of the three. */
  readonly issuer: string | null;
  readonly labels: readonly string[];
  readonly certificate: string | null;
  readonly created_by: string;
  readonly created_at: string;
  readonly deadline_at: string;
  readonly finished_at: string | null;
  readonly canceled_by: string | null;
  /** How many are in each state. */
  readonly certificates: Readonly<Record<ReplacedState, number>>;
};

export type ReplacedCertificate = {
  readonly certificate: string;
  readonly state: ReplacedState;
  readonly old_version: number;
  readonly new_version: number | null;
  /** Deployments and endpoints with the new version, and all that are known. */
  readonly live: number;
  readonly places: number;
  readonly error: string | null;
  readonly changed_at: string;
};

export type AffectedCertificate = {
  readonly certificate: string;
  readonly version: number;
  readonly not_after: string;
  /** Why the vault cannot replace it. */
  readonly obstacle: string | null;
  readonly hosts: readonly string[];
  readonly endpoints: readonly string[];
  readonly api_keys: readonly string[];
};

export type ReplacementPreview = {
  readonly replaced: number;
  readonly obstructed: number;
  readonly certificates: readonly AffectedCertificate[];
};
