/** The renewal tables: the queue with its history, and the limits of CAs. */
import type { Generated } from 'kysely';
import type { Identifier } from '../../base/identifier.ts';
import type { Json } from '../../base/json.ts';

export type RenewalStatus = 'queued' | 'running' | 'succeeded' | 'failed';

/** A step of a renewal, at a time in UTC milliseconds. */
export type RenewalStep = { readonly at: number; readonly text: string };

export type RenewalsTable = {
  id: Generated<number>;
  certificate_id: number;
  status: RenewalStatus;
  requested_by: string;
  requested_at: number;
  started_at: number | null;
  finished_at: number | null;
  /** How many times a worker has claimed it. */
  claims: Generated<number>;
  lease_owner: string | null;
  lease_expires_at: number | null;
  /** PKCS#8 DER of the new version's key, stored before anything is requested from the issuer. */
  sealed_private_key: Buffer | null;
  version: number | null;
  error: string | null;
  /** The issuer chosen for it. */
  issuer_id: number | null;
  acme_account_id: number | null;
  /** The order it resumes after a crash. */
  order_url: string | null;
  /** The ordered names, a copy of `certificates.domains` at that time. */
  order_domains: Json<Identifier[]> | null;
  /** Its steps so far. */
  steps: Json<RenewalStep[]> | null;
  /** Among renewals that wait for an issuer, the one with the earliest time is claimed first. */
  urgent_at: Generated<number>;
  /** Which lane of the issuer it waits in: the id of its DNS provider, 0 if no provider has its names. */
  dns_lane: Generated<number>;
  /** A limit of the CA keeps it queued until then, and which one. */
  held_until: number | null;
  hold_reason: string | null;
  /** The CA rejected it with 429 without naming the limit. */
  limited: Generated<0 | 1>;
  /** A digest of the set of its names, independent of their order. */
  name_set: string | null;
};

/** Limits that a CA reported for a set of names or a registered domain; they apply to all affected certificates. */
export type IssuanceHoldsTable = {
  directory_url: string;
  scope: 'names' | 'domain';
  /** The digest of the names, or the domain. */
  subject: string;
  until: number;
  reason: string;
};
