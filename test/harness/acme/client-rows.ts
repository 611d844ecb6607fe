/** ACME clients as rows, for tests of what happens after an order was permitted. */
import { toJson } from '../../../src/base/json.ts';
import type { Vault } from '../../../src/domain/vault.ts';

/** Adds an ACME client that may order anything, and returns its id. Its key is no key. */
export async function insertAcmeClient(
  { db, world }: Pick<Vault, 'db' | 'world'>,
  name: string,
): Promise<number> {
  const { id } = await db.write((writer) =>
    writer
      .insertInto('acme_clients')
      .values({
        ...{ name, kid: `kid-${name}`, sealed_hmac_key: Buffer.alloc(0) },
        ...{ domains: toJson(['*']), issuers: toJson(['local-ca']), created_at: world.now() },
      })
      .returning('id')
      .executeTakeFirstOrThrow(),
  );
  return id;
}
