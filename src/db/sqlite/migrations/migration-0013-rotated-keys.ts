/** The secret of an API key before its rotation, valid until the overlap ends, and keys by name. It has shipped: never edit it, add a migration. */
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';

const changes = [
  'alter table api_keys add column previous_prefix text',
  'alter table api_keys add column previous_hash blob',
  'alter table api_keys add column previous_expires_at integer',
  'create unique index api_keys_by_previous_prefix on api_keys (previous_prefix) where previous_prefix is not null',
  // Not unique: older vaults accepted a name twice.
  'create index api_keys_by_name on api_keys (name) where revoked_at is null',
  `create trigger api_keys_rotation_moves_generation
     after update of previous_prefix, previous_hash, previous_expires_at on api_keys begin
       update settings set value = value + 1 where key = 'generation';
     end`,
];

export const rotatedKeys: Migration = {
  async up(db) {
    for (const statement of changes) await sql.raw(statement).execute(db);
  },
};
