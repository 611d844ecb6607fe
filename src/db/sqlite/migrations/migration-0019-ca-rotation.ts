/** Several roots of one private CA, and the requests for certificates of companies' CAs. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table ca_certificates add column generation integer not null default 0;
  alter table ca_certificates add column is_external integer not null default 0;
  alter table ca_certificates add column signer_id integer references ca_certificates (id) on delete cascade;
  alter table ca_certificates add column issued_until integer not null default 0;
  alter table ca_certificates add column upper_chain blob;
  alter table ca_certificates add column cross_certificate blob;

  create index ca_certificates_by_signer on ca_certificates (signer_id, not_after);

  update ca_certificates set
    signer_id = (select root.id from ca_certificates root where root.issuer_id = ca_certificates.issuer_id and root.role = 'root'),
    issued_until = max(
      coalesce((select max(not_after) from certificate_versions where source = 'local-ca'), 0),
      coalesce((select max(json_extract(facts, '$.not_after')) from deleted_versions), 0)
    )
  where role = 'intermediate';

  create table ca_requests (
    issuer_id integer primary key references issuers (id) on delete cascade,
    csr blob not null,
    sealed_private_key blob not null,
    created_at integer not null
  ) strict
`;

export const caRotation: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
