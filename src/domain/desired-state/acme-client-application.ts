/** Makes the vault hold the ACME clients of a desired state. */
import type { Writer } from '../../db/database.ts';
import { findAcmeClientByName } from '../../db/tables/acme-server/acme-clients.ts';
import { storeAcmeClientChange } from '../acme-server/clients/acme-client-change.ts';
import type { CreateAcmeClientInput } from '../acme-server/clients/acme-client-inputs.ts';
import { createAcmeClientKey } from '../acme-server/clients/acme-client-keys.ts';
import { storeAcmeClient, storeClientRevocation } from '../acme-server/clients/acme-clients.ts';
import type { Actor } from '../audit/audit.ts';
import type { SealingContext, WorldContext } from '../contexts.ts';

/** Creates the client, whose key the next rotation shows, or changes it. */
export async function applyAcmeClient(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  input: CreateAcmeClientInput,
): Promise<void> {
  const found = await findAcmeClientByName(writer, input.name);
  if (found === undefined) await storeAcmeClient(vault, writer, actor, input, createAcmeClientKey(vault));
  else await storeAcmeClientChange(vault, writer, actor, found.id, input);
}

/** Revokes the client of this name. */
export async function removeAcmeClient(
  vault: WorldContext,
  writer: Writer,
  actor: Actor,
  name: string,
): Promise<void> {
  const found = await findAcmeClientByName(writer, name);
  if (found !== undefined) await storeClientRevocation(vault, writer, actor, found.id);
}
