/** A database without a vault around it that can record events: bound to an integrity key of the test's. */
import { Secret } from '../../src/base/secret.ts';
import { IntegrityKey } from '../../src/crypto/integrity-key.ts';
import { chainBeginning } from '../../src/db/audit/audit-chain.ts';
import { writeAuditMark } from '../../src/db/audit/audit-mark.ts';
import type { Database } from '../../src/db/database.ts';
import { readSetting } from '../../src/db/tables/settings.ts';

/** The same key in every process of a test. */
export const testIntegrity = new IntegrityKey(new Secret(Buffer.alloc(32, 7)));

/** Binds the database, and marks the beginning of its log where there is none yet. */
export async function bound(db: Database): Promise<Database> {
  db.integrity = testIntegrity;
  await db.write(async (writer) => {
    if ((await readSetting(writer, 'audit-mark')) === undefined) {
      await writeAuditMark(writer, testIntegrity, chainBeginning);
    }
  });
  return db;
}
