/** Changes what an ACME client may do and keeps its key and accounts. */
import { parseJson, parseJsonOr } from '../../../base/json.ts';
import { tagAcmeClient } from '../../../db/audit/row-tags.ts';
import type { Writer } from '../../../db/database.ts';
import { type AcmeClientRow, updateAcmeClientRow } from '../../../db/tables/acme-server/acme-clients.ts';
import { indexLabels } from '../../../db/tables/object-labels.ts';
import { refusePast } from '../../access/api-keys.ts';
import { type Actor, record } from '../../audit/audit.ts';
import type { TimedContext, WorldContext } from '../../contexts.ts';
import type { CreateAcmeClientInput, UpdateAcmeClientInput } from './acme-client-inputs.ts';
import { requireAcmeClient } from './acme-client-views.ts';
import {
  type AcmeClientRights,
  checkedRights,
  columnsOf,
  refuseAlteredClient,
  refuseInactiveClient,
  refuseTakenClientName,
  resourceOf,
  shownRights,
} from './acme-clients.ts';
import type { NamePattern } from './name-patterns.ts';

/**
 * Changes some rights of a client with immediate effect, and returns whether any has another value now. The default
 * rate of new issuers applies where the client has none. Throws `acme_client_not_found`, `acme_client_inactive` for a
 * revoked client, and what `storeAcmeClientChange` throws.
 */
export async function changeAcmeClient(
  vault: TimedContext,
  actor: Actor,
  id: number,
  { expires_at, ...changes }: UpdateAcmeClientInput,
): Promise<boolean> {
  return vault.db.write(async (writer) => {
    const client = await requireAcmeClient(writer, id);
    if (client.revoked_at !== null) refuseInactiveClient(client, 'revoked');
    const { expires_at: kept, rate, ...current } = rightsOf(client);
    const end = expires_at === undefined ? kept : (expires_at ?? undefined);
    const set = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
    const isRateOpen = changes.issuers !== undefined && rate === null;
    const input = { ...current, ...(!isRateOpen && { rate }), ...set, expires_at: end };
    return storeAcmeClientChange(vault, writer, actor, id, input);
  });
}

/**
 * Replaces the rights of a client in the caller's transaction; they apply to its next request. Returns whether any has
 * another value now; if not, nothing is written. Throws `acme_client_not_found`, `acme_client_exists` for a new name
 * that another client has, and `invalid_request` for unknown issuers and profiles, a new expiry in the past, and a
 * client that was modified outside the vault, because its key may belong to an attacker.
 */
export async function storeAcmeClientChange(
  { world }: WorldContext,
  writer: Writer,
  actor: Actor,
  id: number,
  input: CreateAcmeClientInput,
): Promise<boolean> {
  const client = await requireAcmeClient(writer, id);
  await refuseAlteredClient(writer, id);
  const now = world.now();
  if (input.expires_at !== (client.expires_at ?? undefined)) refusePast(input.expires_at, now);
  if (input.name !== client.name) await refuseTakenClientName(writer, input.name, id);
  const rights = await checkedRights(writer, input);
  const after = shownRights(rights);
  const before = differences(shownRights(rightsOf(client)), after);
  if (Object.keys(before).length === 0) return false;
  await updateAcmeClientRow(writer, id, columnsOf(rights));
  await indexLabels(writer, 'acme-client', id, rights.labels);
  await tagAcmeClient(writer, id);
  const detail = { ...after, kid: client.kid, before };
  record(writer, { actor, action: 'acme_client.update', resource: resourceOf(id), detail }, now);
  return true;
}

/** The rights of a client as an input that would leave them unchanged. Patterns were parsed before they were stored. */
function rightsOf(client: AcmeClientRow): AcmeClientRights {
  return {
    name: client.name,
    domains: parseJson(client.domains) as NamePattern[],
    issuers: parseJson(client.issuers),
    profiles: parseJsonOr(client.profiles, []),
    allowed_networks: parseJson(client.allowed_networks),
    validation: parseJson(client.validation),
    rate: client.rate,
    expires_at: client.expires_at ?? undefined,
    labels: parseJsonOr(client.labels, []),
  };
}

type Shown = ReturnType<typeof shownRights>;

/** The former values of the rights that differ; the order of a list does not matter. */
function differences(before: Shown, after: Shown): Partial<Shown> {
  const differs = ([name, value]: [string, unknown]) =>
    canonical(value) !== canonical(after[name as keyof Shown]);
  return Object.fromEntries(Object.entries(before).filter(differs));
}

function canonical(value: unknown): string {
  return JSON.stringify(Array.isArray(value) ? [...value].sort() : value);
}
