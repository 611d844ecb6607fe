/** The tables of keys that no version in use has: the next key of a certificate, and deleted certificates. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';

export type NextKeysTable = {
  certificate_id: number;
  /** PKCS#8 DER. */
  sealed_private_key: Buffer;
  key_type: string;
  /** The pin of its public key, which clients get before the key is used. */
  pin: string;
  created_at: number;
};

export type DeletedCertificatesTable = {
  id: Generated<number>;
  /** Not unique: a name can be used and deleted again. */
  name: string;
  deleted_at: number;
  /** An actor in the format of the audit log. */
  deleted_by: string;
  /** What it takes to restore it, without versions (domain/certificates/deleted-certificates.ts). */
  facts: Json<object>;
  /** The id under which its versions and its next key stay; null if an older vault moved them to `deleted_versions`. */
  certificate_id: number | null;
};

export type DeletedVersionsTable = {
  id: Generated<number>;
  deleted_certificate_id: number;
  version: number;
  /** The version without its private key (domain/certificates/deleted-versions.ts). */
  facts: Json<object>;
  /** The private key as PEM; empty if the client holds it. */
  sealed_private_key: Buffer;
};
