/**
 * Reseals the blobs of other keys with the current key, a few at a time: requests run in between, and an interruption
 * loses nothing.
 */
import type { Secret } from '../../base/secret.ts';
import { type BlobOwner, SealError, sealedBy } from '../../crypto/secrets/sealing.ts';
import type { Database, Writer } from '../../db/database.ts';
import { currentMasterKey, listMasterKeys } from '../../db/tables/master-keys.ts';
import {
  listBlobsOfOtherKeys,
  replaceBlob,
  type SealedPlace,
  type SealedRow,
  sealedPlaceNames,
  sealedPlaces,
} from '../../db/tables/sealed-blobs.ts';
import type { SealingContext } from '../contexts.ts';
import { openFor, sealFor } from '../sealed-secrets.ts';

/** Blobs per transaction: a few milliseconds, mostly for the disk. */
const blobsPerTurn = 50;

/** The sealing purpose of the blobs in each place. */
const purposes: Record<SealedPlace, BlobOwner['purpose']> = {
  'certificate_versions.sealed_private_key': 'seal: certificate private key',
  'renewals.sealed_private_key': 'seal: certificate private key',
  'next_keys.sealed_private_key': 'seal: certificate private key',
  'deleted_versions.sealed_private_key': 'seal: certificate private key',
  'ca_certificates.sealed_private_key': 'seal: certificate authority key',
  'ca_requests.sealed_private_key': 'seal: certificate authority key',
  'acme_accounts.sealed_private_key': 'seal: acme account key',
  'acme_accounts.sealed_next_private_key': 'seal: acme account key',
  'acme_issuers.sealed_eab_key': 'seal: external account key',
  'acme_clients.sealed_hmac_key': 'seal: external account key',
  'dns_providers.sealed_secret': 'seal: dns provider secret',
  'notification_channels.sealed_settings': 'seal: notification channel settings',
  'deploy_targets.sealed_settings': 'seal: deploy target settings',
  'authenticator_apps.sealed_secret': 'seal: authenticator app secret',
  'audit_keys.sealed_private_key': 'seal: audit key',
};

/** The number of resealed blobs, and those that cannot be opened, because of damage or a lost key (`table record`). */
export type Resealed = { readonly blobs: number; readonly damaged: readonly string[] };

type Parts = SealingContext & { readonly db: Pick<Database, 'write'> };

/**
 * Seals everything in the database with its current key, and reports the number of blobs after each batch. Damaged
 * blobs stay as they are: no key opens them. Throws SealError if the key that the rotation replaces is missing;
 * resealed blobs stay resealed.
 */
export async function resealAll(
  vault: Parts,
  report: (blobs: number) => void = () => undefined,
): Promise<Resealed> {
  let blobs = 0;
  const damaged: string[] = [];
  for (const place of sealedPlaceNames) {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const turn = await resealSome(vault, place, after);
      blobs += turn.blobs;
      damaged.push(...turn.damaged);
      if (turn.blobs > 0) report(blobs);
      after = turn.last;
      // SQLite never yields to the event loop, so nothing else would run.
      await vault.world.turn();
    }
  }
  return { blobs, damaged };
}

/** The owner of the blob in this record of a place. */
export function blobOwner(place: SealedPlace, record: string): BlobOwner {
  return { table: sealedPlaces[place].table, record, purpose: purposes[place] };
}

/** `last` is the row to continue after, undefined at the end. */
async function resealSome(
  vault: Parts,
  place: SealedPlace,
  after: number,
): Promise<Resealed & { last: number | undefined }> {
  return vault.db.write(async (writer) => {
    const current = await currentMasterKey(writer);
    if (current === undefined) throw new Error('a vault without a master key');
    const other = { key: Buffer.from(current, 'hex'), after, limit: blobsPerTurn };
    const rows = await listBlobsOfOtherKeys(writer, place, other);
    const damaged: string[] = [];
    for (const row of rows) {
      const owner = blobOwner(place, row.record);
      const plaintext = await opened(vault, writer, owner, row);
      if (plaintext === undefined) damaged.push(`${owner.table} ${owner.record}`);
      else await replaceBlob(writer, place, row.row, await sealFor(vault, writer, owner, plaintext));
    }
    const last = rows.length < blobsPerTurn ? undefined : rows.at(-1)?.row;
    return { last, blobs: rows.length - damaged.length, damaged };
  });
}

/**
 * Undefined if no key opens the blob, nor ever will: a blob still sealed with a retired key did not open when it was
 * retired.
 */
async function opened(
  vault: Parts,
  writer: Writer,
  owner: BlobOwner,
  { blob }: SealedRow,
): Promise<Secret | undefined> {
  try {
    return openFor(vault, owner, blob);
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    if (error.reason !== 'other-key') return undefined;
    const name = sealedBy(blob);
    const keys = await listMasterKeys(writer);
    if (keys.some(({ id, state }) => id === name && state === 'previous')) throw error;
    return undefined;
  }
}
