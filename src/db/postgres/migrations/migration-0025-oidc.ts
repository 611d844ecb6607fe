/** People of an OpenID Connect provider. It has shipped: never edit it, add a migration. */
import { type Kysely, sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = `
  alter table administrators add column oidc_issuer text collate "C";
  alter table administrators add column oidc_subject text collate "C"
    check ((oidc_subject is null) = (oidc_issuer is null));
  create unique index administrators_by_oidc_subject on administrators (oidc_issuer, oidc_subject)
    where oidc_subject is not null;
  alter table sessions add column oidc_sid text collate "C";
  create table oidc_uses (
    id_hash bytea primary key,
    expires_at bigint not null,
    result bytea
  );
  create index oidc_uses_by_expiry on oidc_uses (expires_at)
`;

export const oidc: Migration = {
  async up(db: Kysely<unknown>) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
