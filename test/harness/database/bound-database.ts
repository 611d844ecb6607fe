/** A database without a vault that can record audit events, bound to an integrity key of the test. */
import { Secret } from '../../../src/base/secret.ts';
import { IntegrityKey } from '../../../src/crypto/secrets/integrity-key.ts';
import { chainBeginning } from '../../../src/db/audit/audit-chain.ts';
import { writeAuditMark } from '../../../src/db/audit/audit-mark.ts';
import type { Database } from '../../../src/db/database.ts';
import { readSetting } from '../../../src/db/tables/settings.ts';

/** The integrity key, the same in every process of a test. */
export const testIntegrity = new IntegrityKey(new Secret(Buffer.alloc(32, 7)));

/** Binds the database, and starts its audit log if there is none. */
export async function bound(db: Database): Promise<Database> {
  db.integrity = testIntegrity;
  await db.write(async (writer) => {
    if ((await readSetting(writer, 'audit-mark')) === undefined) {
      await writeAuditMark(writer, testIntegrity, chainBeginning);
    }
  });
  return db;
}
