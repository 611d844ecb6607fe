/** API keys that are bound to a client certificate. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

/** No reference: a key stays bound when its certificate is deleted, and works no more. */
const changes = `
  alter table api_keys add column client_certificate_id integer;
  alter table api_keys add column client_certificate text;
  create index api_keys_by_client_certificate on api_keys (client_certificate_id)
    where client_certificate_id is not null
`;

export const clientCertificates: Migration = {
  async up(db) {
    for (const statement of changes.split(';')) await sql.raw(statement).execute(db);
  },
};
