/**
 * Fills an empty database with a whole vault, in one transaction of the target: a copy that is killed leaves it empty.
 * Before the end, what arrived is compared with what was read, the audit log is verified, and every sealed secret is
 * opened.
 */
import type { Integrity } from '../../base/integrity.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import { SealError } from '../../crypto/secrets/sealing.ts';
import type { Database, Reader, Writer } from '../../db/database.ts';
import { copyRows, differingTables, digestRows, type TableDigests } from '../../db/table-rows.ts';
import { isEmptyVault } from '../../db/tables/empty-vault.ts';
import { listBlobsOfOtherKeys, type SealedPlace, sealedPlaceNames } from '../../db/tables/sealed-blobs.ts';
import { deleteSettings } from '../../db/tables/settings.ts';
import { verifyChain } from '../audit/audit-verification.ts';
import type { SealingContext, SecretsContext } from '../contexts.ts';
import { unfinishedCopyOf } from '../instance/moved-vault.ts';
import { blobOwner } from '../master-key/resealing.ts';
import { openFor } from '../sealed-secrets.ts';

/** What a copy holds. */
export type CopiedVault = {
  readonly rows: number;
  readonly events: number;
  readonly secrets: number;
};

const blobsPerTurn = 200;
const named = 5;

/** No master key has this id, so all blobs are of others. */
const noKey = Buffer.alloc(8);

/** Throws OperatorError unless a vault may be copied into the database; `vaultId` may have begun to. */
export async function refuseFilled(db: Pick<Database, 'reader' | 'place'>, vaultId?: string): Promise<void> {
  const begun = await unfinishedCopyOf(db.reader);
  if (begun !== undefined && begun === vaultId) return;
  if (begun === undefined && (await isEmptyVault(db.reader))) return;
  throw new OperatorError(`${db.place} already contains a vault`, {
    hint: 'Name an empty database or directory. Nothing was changed.',
  });
}

/**
 * Copies everything that `source` sees, which must be one state, into `target`; `settle` adds to the same transaction.
 * Throws OperatorError, having changed nothing, if the target is not empty or anything in it is not what it should be.
 */
export async function fillDatabase(
  source: SecretsContext & { readonly reader: Reader },
  target: Database,
  { vaultId, settle }: { vaultId?: string | undefined; settle: (writer: Writer) => Promise<void> },
): Promise<CopiedVault> {
  const { db, world, reader } = source;
  // The secret behind it arrives with the rows.
  target.integrity = db.integrity;
  return target.write(async (writer) => {
    await target.whole.lock(writer);
    await refuseFilled({ reader: writer, place: target.place }, vaultId);
    const read = await copyAll(reader, writer, world, target.place);
    await target.whole.setAssignedIds(writer, await db.whole.assignedIds(reader));
    const copied = await verifyCopy(source, writer, read, target.place);
    await deleteSettings(writer, ['served-since', 'served-by', 'served-settings']);
    await settle(writer);
    return copied;
  });
}

async function copyAll(reader: Reader, writer: Writer, world: World, place: string): Promise<TableDigests> {
  try {
    return await copyRows(reader, writer, world);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`${place} did not take all rows: ${describeSystemError(error)}`, {
      hint: 'The vault may be damaged: check it with "vault doctor". Nothing was copied.',
      cause: error,
    });
  }
}

async function verifyCopy(
  source: SealingContext,
  writer: Writer,
  read: TableDigests,
  place: string,
): Promise<CopiedVault> {
  const differing = differingTables(read, await digestRows(writer, source.world));
  if (differing.length > 0) {
    throw new OperatorError(`${place} did not keep all rows unchanged: ${differing.join(', ')}`, {
      hint: 'It may be damaged, or cannot store a text of the vault. Nothing was changed.',
    });
  }
  const { events } = await verifyEvents(writer, writer.integrity);
  const secrets = await openAll(source, writer);
  return { rows: [...read.values()].reduce((sum, { rows }) => sum + rows, 0), events, secrets };
}

async function verifyEvents(reader: Reader, integrity: Integrity | undefined): Promise<{ events: number }> {
  const { events, faults, faultCount } = await verifyChain({ db: { reader, integrity } });
  if (faultCount === 0) return { events };
  throw new OperatorError(`the audit log failed verification: ${faults[0]?.message}`, {
    hint: 'Someone changed the database outside the vault; "vault audit verify" tells more. Nothing was copied.',
  });
}

/** Opens every sealed blob, and returns their number. Throws OperatorError that names those that do not open. */
async function openAll(source: SealingContext, reader: Reader): Promise<number> {
  let count = 0;
  const damaged: string[] = [];
  for (const place of sealedPlaceNames) {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const other = { key: noKey, after, limit: blobsPerTurn };
      const rows = await listBlobsOfOtherKeys(reader, place, other);
      for (const { record, blob } of rows) {
        count += 1;
        if (!opens(source, place, record, blob)) damaged.push(`${place.split('.')[0]} ${record}`);
      }
      after = rows.length < blobsPerTurn ? undefined : rows.at(-1)?.row;
      await source.world.turn();
    }
  }
  if (damaged.length === 0) return count;
  const more = damaged.length > named ? ` and ${damaged.length - named} more` : '';
  throw new OperatorError(`sealed secrets do not open: ${damaged.slice(0, named).join(', ')}${more}`, {
    hint: 'They are damaged, or sealed by a master key that is missing. Nothing was copied.',
  });
}

function opens(source: SealingContext, place: SealedPlace, record: string, blob: Buffer): boolean {
  try {
    openFor(source, blobOwner(place, record), blob);
    return true;
  } catch (error) {
    if (error instanceof SealError) return false;
    throw error;
  }
}
