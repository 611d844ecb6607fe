/** The tables of the audit log as the queries see them; schema.ts has the others, and says how values are written. */
import type { Generated } from 'kysely';

export type AuditEventsTable = {
  id: Generated<number>;
  at: number;
  actor: string;
  action: string;
  resource: string;
  detail: string;
  ip: string | null;
  request_id: string | null;
  /**
   * The link to the previous event, with its tag (audit-chain.ts); shorter if an earlier version of the vault wrote it.
   */
  link: Buffer;
};

export type AuditKeysTable = {
  id: Generated<number>;
  /** SPKI DER. */
  public_key: Buffer;
  /** PKCS#8 DER; null once another key has replaced it. */
  sealed_private_key: Buffer | null;
  created_at: number;
};
