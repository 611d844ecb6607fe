/** ACME clients as lists show them, never with their keys. */
import { parseJson, parseJsonOr } from '../../../base/json.ts';
import { Problem } from '../../../base/problem.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../../base/timestamp.ts';
import type { Reader } from '../../../db/database.ts';
import {
  type AcmeClientPage,
  type AcmeClientRow,
  findAcmeClientRow,
  type ListedAcmeClientRow,
  pageAcmeClientRows,
} from '../../../db/tables/acme-server/acme-clients.ts';
import { didYouMean } from '../../closest-names.ts';
import type { TimedContext } from '../../contexts.ts';
import { inPortions, unlimited } from '../../portions.ts';
import type { ValidationType } from './acme-client-inputs.ts';

export type AcmeClientState = 'active' | 'expired' | 'revoked';

/** An ACME client as lists show it; never its HMAC key. */
export type AcmeClientView = {
  id: number;
  name: string;
  kid: string;
  /** The patterns of the names that it may order. */
  domains: string[];
  issuers: string[];
  /** The profiles that it may use; empty for any. */
  profiles: string[];
  /** The networks it may connect from; empty for any. */
  allowed_networks: string[];
  /** The challenges that validate its names; empty where the binding is the proof. */
  validation: ValidationType[];
  /** New orders per hour; null for no limit. */
  rate: number | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
  last_used_ip: string | null;
  state: AcmeClientState;
  /** Its own labels. */
  labels: string[];
};

/** The state of a client at `now`; a revoked client stays revoked after its expiry. */
export function acmeClientState(
  row: Pick<AcmeClientRow, 'expires_at' | 'revoked_at'>,
  now: number,
): AcmeClientState {
  if (row.revoked_at !== null) return 'revoked';
  return row.expires_at !== null && row.expires_at <= now ? 'expired' : 'active';
}

export async function pageOfAcmeClients(
  { db, world }: TimedContext,
  page: AcmeClientPage,
): Promise<AcmeClientView[]> {
  const rows = await pageAcmeClientRows(db.reader, page);
  return rows.map((row) => viewOf(row, world.now()));
}

/** All clients by id, or those with all of the labels, page by page. */
export function allAcmeClients(
  vault: TimedContext,
  labels?: readonly string[],
): AsyncGenerator<readonly AcmeClientView[]> {
  return inPortions<AcmeClientView>(vault, unlimited, (limit, last) =>
    pageOfAcmeClients(vault, { after: last?.id, limit, labels }),
  );
}

/** One client as lists show it. Throws `acme_client_not_found`. */
export async function viewAcmeClient({ db, world }: TimedContext, id: number): Promise<AcmeClientView> {
  return viewOf(await requireAcmeClient(db.reader, id), world.now());
}

function viewOf(row: ListedAcmeClientRow, now: number): AcmeClientView {
  return {
    id: row.id,
    name: row.name,
    kid: row.kid,
    domains: parseJson(row.domains),
    issuers: parseJson(row.issuers),
    profiles: parseJsonOr(row.profiles, []),
    allowed_networks: parseJson(row.allowed_networks),
    validation: parseJson(row.validation),
    rate: row.rate,
    created_at: formatTimestamp(row.created_at),
    expires_at: formatTimestampOrNull(row.expires_at),
    revoked_at: formatTimestampOrNull(row.revoked_at),
    last_used_at: formatTimestampOrNull(row.last_used_at),
    last_used_ip: row.last_used_ip,
    state: acmeClientState(row, now),
    labels: parseJsonOr(row.labels, []),
  };
}

/** The client of this id. Throws `acme_client_not_found`. */
export async function requireAcmeClient(reader: Reader, id: number): Promise<AcmeClientRow> {
  const client = await findAcmeClientRow(reader, id);
  if (client !== undefined) return client;
  throw new Problem('acme_client_not_found', {
    detail: `Unknown ACME client ${id}.`,
    hint: 'Try: vault acme-client list',
  });
}

/**
 * The id of the client in a list that `text` means: an id or a name. Throws `acme_client_not_found` with the closest
 * names.
 */
export async function acmeClientIdFrom(
  pages: AsyncIterable<readonly AcmeClientView[]>,
  text: string,
): Promise<number> {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  const names: string[] = [];
  for await (const page of pages) {
    const found = page.find(({ name }) => name === text);
    if (found !== undefined) return found.id;
    names.push(...page.map(({ name }) => name));
  }
  throw new Problem('acme_client_not_found', {
    detail: `Unknown ACME client ${JSON.stringify(text)}.`,
    hint: didYouMean(text, names, 'Try: vault acme-client list'),
  });
}
