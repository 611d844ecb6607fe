/** Several roots of one private CA, and the requests for certificates of companies' CAs. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table ca_certificates add column generation bigint not null default 0;
  alter table ca_certificates add column is_external bigint not null default 0;
  alter table ca_certificates add column signer_id bigint references ca_certificates (id) on delete cascade;
  alter table ca_certificates add column issued_until bigint not null default 0;
  alter table ca_certificates add column upper_chain bytea;
  alter table ca_certificates add column cross_certificate bytea;

  create index ca_certificates_by_signer on ca_certificates (signer_id, not_after);

  update ca_certificates set
    signer_id = (select root.id from ca_certificates root where root.issuer_id = ca_certificates.issuer_id and root.role = 'root'),
    issued_until = greatest(
      coalesce((select max(not_after) from certificate_versions where source = 'local-ca'), 0),
      coalesce((select max((facts::json ->> 'not_after')::bigint) from deleted_versions), 0)
    )
  where role = 'intermediate';

  create table ca_requests (
    issuer_id bigint primary key references issuers (id) on delete cascade,
    csr bytea not null,
    sealed_private_key bytea not null,
    created_at bigint not null
  )
`;

export const caRotation: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
