/** The tables of renewals: the queue with its history, and what CAs limit. */
import type { Generated } from 'kysely';

export type RenewalStatus = 'queued' | 'running' | 'succeeded' | 'failed';

export type RenewalsTable = {
  id: Generated<number>;
  certificate_id: number;
  status: RenewalStatus;
  requested_by: string;
  requested_at: number;
  started_at: number | null;
  finished_at: number | null;
  /** How often a worker has taken it up. */
  claims: Generated<number>;
  lease_owner: string | null;
  lease_expires_at: number | null;
  /** PKCS#8 DER of the new version's key, there before anything is asked of the issuer. */
  sealed_private_key: Buffer | null;
  version: number | null;
  error: string | null;
  /** The issuer that was chosen for it. */
  issuer_id: number | null;
  acme_account_id: number | null;
  /** The order it resumes after a crash. */
  order_url: string | null;
  /** The names that were ordered, as `certificates.domains` had them then. */
  order_domains: string | null;
  /** What it did so far, in words: `[{ "at": …, "text": … }]`. */
  steps: string | null;
  /** Of those that wait for an issuer, the one with the earliest is taken up first. */
  urgent_at: Generated<number>;
  /** Which of the issuer's lanes it waits in: the id of its DNS provider, 0 where no provider has its names. */
  dns_lane: Generated<number>;
  /** A limit of the CA keeps it in the queue until then, and which one that is. */
  held_until: number | null;
  hold_reason: string | null;
  /** The CA refused it with 429 and did not say which limit that was. */
  limited: Generated<0 | 1>;
  /** A digest of the set of its names, independent of their order. */
  name_set: string | null;
};

/** What a CA refused by a limit on a set of names or a registered domain, for all certificates that it concerns. */
export type IssuanceHoldsTable = {
  directory_url: string;
  scope: 'names' | 'domain';
  /** The digest of the names, or the domain. */
  subject: string;
  until: number;
  reason: string;
};
