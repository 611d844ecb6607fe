/** The key of an ACME client: what it proves that an account belongs to it with (RFC 8555 §7.3.4). */
import { Secret } from '../../../base/secret.ts';
import type { World } from '../../../base/world.ts';
import type { Writer } from '../../../db/database.ts';
import { setAcmeClientKey } from '../../../db/tables/acme-server/acme-clients.ts';
import type { SealingContext, WorldContext } from '../../contexts.ts';
import { acmeClientKeyOwner, sealFor } from '../../sealed-secrets.ts';

/** A new key and its identifier. */
export type AcmeClientKey = { readonly kid: string; readonly hmacKey: Secret };

const kidSize = 12;
const hmacKeySize = 32;

/** Draws a key. Its identifier is hexadecimal, so that no program takes it for an option. */
export function createAcmeClientKey({ world }: WorldContext): AcmeClientKey {
  return {
    kid: world.randomBytes(kidSize).toString('hex'),
    hmacKey: new Secret(bytesForOptions(world)),
  };
}

/** Bytes whose base64url text does not begin with "-", which `certbot --eab-hmac-key` would take for an option. */
function bytesForOptions(world: World): Buffer {
  const bytes = world.randomBytes(hmacKeySize);
  const first = bytes[0] ?? 0;
  // The first six bits of "-" are 62.
  if (first >> 2 === 62) bytes[0] = first ^ 0x80;
  return bytes;
}

/** The key as clients take it. */
export function textOfKey({ hmacKey }: Pick<AcmeClientKey, 'hmacKey'>): Secret<string> {
  return new Secret(hmacKey.expose().toString('base64url'));
}

/** Stores the key of a client in the caller's transaction. */
export async function storeAcmeClientKey(
  vault: SealingContext,
  writer: Writer,
  id: number,
  { kid, hmacKey }: AcmeClientKey,
): Promise<void> {
  const sealed_hmac_key = await sealFor(vault, writer, acmeClientKeyOwner(id), hmacKey);
  await setAcmeClientKey(writer, id, { kid, sealed_hmac_key });
}
