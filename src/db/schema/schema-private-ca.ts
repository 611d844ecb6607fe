/** The tables of private CAs: their certificates, settings, revocations and CRLs. */
import type { Generated } from 'kysely';
import type { Json } from '../../base/json.ts';
import type { KeyType } from '../../base/key-type.ts';

/** The domains and networks that a CA certificate permits. */
export type CaConstraints = { readonly domains: readonly string[]; readonly ips: readonly string[] };

export type CaCertificatesTable = {
  id: Generated<number>;
  issuer_id: number;
  role: 'root' | 'intermediate';
  certificate: Buffer;
  sealed_private_key: Buffer;
  not_before: number;
  not_after: number;
  created_at: number;
  /** The names that it permits (ca-settings.ts); null for any. */
  constraints: Generated<Json<CaConstraints> | null>;
  /** Of roots: the highest is the one that the CA issues under; others are former roots. */
  generation: Generated<number>;
  /** 1 for the root of a company, whose key the vault never had. */
  is_external: Generated<number>;
  /** Of intermediates: the row of their root. */
  signer_id: Generated<number | null>;
  /** Of intermediates: what they issued has expired by then. */
  issued_until: Generated<number>;
  /** What follows it in the chains of certificates: concatenated DER; null for nothing. */
  upper_chain: Generated<Buffer | null>;
  /** Of a former root: its key certified by its successor (DER). */
  cross_certificate: Generated<Buffer | null>;
};

export type RevokedCertificatesTable = {
  id: Generated<number>;
  /** The CA certificate whose key signed the revoked one. */
  ca_certificate_id: number;
  /** Hexadecimal, as in `certificate_versions`. */
  serial: string;
  /** A number of RFC 5280 §5.3.1. */
  reason: number;
  revoked_at: number;
  not_after: number;
};

export type CrlsTable = {
  ca_certificate_id: number;
  /**
   * How many certificates were ever revoked; each revocation increments it, so that those of several nodes follow each
   * other.
   */
  revocations: number;
  /** `revocations` when the signed CRL was begun: it has those and maybe later ones. */
  covered: number;
  /** The number of the signed CRL; 0 if there is none yet. */
  number: number;
  signed_at: number;
  next_update: number;
  /** DER. */
  crl: Buffer;
};

/** How a private CA differs from the built-in one at its creation; null in each column, and no row, for the usual. */
export type PrivateCasTable = {
  issuer_id: number;
  /** Of the root; the intermediates get one derived from it. */
  common_name: string | null;
  /** What it may issue for; both null for any name. */
  permit_domains: Json<string[]> | null;
  permit_ips: Json<string[]> | null;
  /** How many CAs may follow the root in a chain. */
  path_length: number | null;
  /** Defaults of the certificates that it issues. */
  lifetime: number | null;
  key_type: string | null;
};

/** What the certificates of a profile have, and what they may have; null in a column that leaves it open. */
export type IssuanceProfilesTable = {
  issuer_id: number;
  /** Unique within the issuer. */
  name: string;
  usage: string | null;
  /** The first is that of new keys. */
  key_types: Json<KeyType[]> | null;
  /** Milliseconds. */
  lifetime: number | null;
  max_lifetime: number | null;
  /** `O=…` fields, kinds of names, and the domains and networks of the names. */
  subject: Json<string[]> | null;
  name_types: Json<('dns' | 'ip' | 'email' | 'uri')[]> | null;
  permit_domains: Json<string[]> | null;
  permit_ips: Json<string[]> | null;
  created_at: number;
};

/** A key of a private CA for which a company's CA is asked for a certificate. */
export type CaRequestsTable = {
  issuer_id: number;
  /** PKCS#10 as DER. */
  csr: Buffer;
  sealed_private_key: Buffer;
  created_at: number;
};
