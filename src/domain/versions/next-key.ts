/**
 * A scheduled key rotation: the key of the next version is generated in advance, so that clients can be given its pin
 * before the vault uses it. The version with that key ends the rotation.
 */
import { createPublicKey, X509Certificate } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import { keyObject, keyTypeOf } from '../../crypto/key-pair.ts';
import { publicKeyPin } from '../../crypto/public-key-pin.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { deleteNextKey, findNextKey, insertNextKey } from '../../db/tables/certificates/next-keys.ts';
import type { DatabaseContext, KeyringContext, SealingContext } from '../contexts.ts';
import { nextKeyOwner, openFor, sealFor } from '../sealed-secrets.ts';

/** The pins of the current and of the next key; null without a version, and without a scheduled rotation. */
export type KeyPins = { readonly current: string | null; readonly next: string | null };

/** Stores the key (PKCS#8 DER) as the next one, in the caller's transaction. A key that is scheduled already stays. */
export async function scheduleNextKey(
  vault: SealingContext,
  writer: Writer,
  certificateId: number,
  key: Secret,
): Promise<void> {
  if ((await findNextKey(writer, certificateId)) !== undefined) return;
  await insertNextKey(writer, {
    certificate_id: certificateId,
    sealed_private_key: await sealFor(vault, writer, nextKeyOwner(certificateId), key),
    key_type: keyTypeOf(keyObject(key)),
    pin: publicKeyPin({ publicKey: createPublicKey(keyObject(key)) }),
    created_at: vault.world.now(),
  });
}

/** Whether the key of the next version is scheduled. */
export async function isNextKeyScheduled({ db }: DatabaseContext, certificateId: number): Promise<boolean> {
  return (await findNextKey(db.reader, certificateId)) !== undefined;
}

/** The scheduled key as PKCS#8 DER, if it has this type. */
export async function nextKey(
  vault: DatabaseContext & KeyringContext,
  certificateId: number,
  keyType: string,
): Promise<Secret | undefined> {
  const row = await findNextKey(vault.db.reader, certificateId);
  if (row === undefined || row.key_type !== keyType) return undefined;
  return openFor(vault, nextKeyOwner(certificateId), row.sealed_private_key);
}

/** Ends a scheduled rotation if the certificate (DER) of a new version has its key. */
export async function endRotation(writer: Writer, certificateId: number, leaf: Buffer): Promise<void> {
  if ((await findNextKey(writer, certificateId)) === undefined) return;
  await deleteNextKey(writer, certificateId, publicKeyPin(new X509Certificate(leaf)));
}

/** Drops a scheduled rotation. */
export async function cancelRotation(writer: Writer, certificateId: number): Promise<void> {
  await deleteNextKey(writer, certificateId);
}

/** The pins that clients of the certificate need now and after its next rotation. */
export async function keyPins(
  reader: Reader,
  { id, current_version: number }: { readonly id: number; readonly current_version: number | null },
): Promise<KeyPins> {
  const version = number === null ? undefined : await findVersion(reader, id, number);
  return {
    current: version === undefined ? null : publicKeyPin(new X509Certificate(version.certificate_pem)),
    next: (await findNextKey(reader, id))?.pin ?? null,
  };
}
