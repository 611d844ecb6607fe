/** Authenticates raw API keys. Unknown, wrong, revoked and expired keys take the same path and get the same answer. */

import { requireIntegrity } from '../../base/integrity.ts';
import { parseJson, parseJsonOr, toJson } from '../../base/json.ts';
import { isScope, type Scope } from '../../base/scope.ts';
import { type ApiKeyToken, readToken, tokenMatches } from '../../crypto/secrets/api-key-token.ts';
import type { Recorded } from '../../db/audit/row-records.ts';
import { apiKeyFits, type TaggedApiKey } from '../../db/audit/row-tags.ts';
import type { Reader } from '../../db/database.ts';
import { type ApiKeyRow, type Binding, findApiKeyByPrefix } from '../../db/tables/access/api-keys.ts';
import { type IpNetwork, parseIpNetwork } from '../../net/ip-network.ts';
import { boundedCache } from '../cache/bounded-cache.ts';
import { FreshCache, type Freshness } from '../cache/freshness.ts';
import type { DatabaseContext, LogContext, LoggedContext } from '../contexts.ts';
import { reachIn } from '../labels/reach.ts';
import type { ApiKeyIdentity } from './identity.ts';
import { confinementIn } from './profile-confinement.ts';

export type Authentication = {
  /** The presented key, even if revoked or expired, so that the refusal can be recorded. */
  readonly identity: ApiKeyIdentity;
  readonly state: SecretState;
};

export type ApiKeyState = 'active' | 'expired' | 'revoked';

/** `replaced`: the key is active, but this secret was replaced by a rotation, and the overlap has ended. */
export type SecretState = ApiKeyState | 'replaced';

/** What one prefix stands for: a key, by its current or its previous secret. */
type KnownKey = {
  readonly row: Pick<ApiKeyRow, 'hash' | 'expires_at' | 'revoked_at'>;
  readonly identity: ApiKeyIdentity;
};

const cachedKeys = 10_000;

/** A cache of its own, so that unknown callers cannot evict valid keys. */
const cachedRefusals = 10_000;

type AuthenticationContext = LoggedContext & { readonly freshness: Freshness };

export class Authenticator {
  readonly #vault: AuthenticationContext;
  readonly #known: FreshCache<string, KnownKey>;
  /** What each prefix stands for that was presented with an invalid key. */
  readonly #refused: FreshCache<string, KnownKey | 'unknown'>;

  constructor(vault: AuthenticationContext) {
    this.#vault = vault;
    this.#known = new FreshCache(vault.freshness, cachedKeys);
    this.#refused = new FreshCache(vault.freshness, cachedRefusals);
  }

  /**
   * The key of a raw value, or undefined if there is none; synchronous if cached. The first refusal of a prefix costs
   * one database query even if the key is cached, and later ones cost none, so that timing does not reveal whether a
   * key exists.
   */
  authenticate(raw: string): Authentication | undefined | Promise<Authentication | undefined> {
    const token = readToken(raw);
    if (token === undefined) return undefined;
    const refused = this.#refused.peek(token.prefix);
    if (refused !== undefined) return this.#judge(token, refused);
    const known = this.#known.peek(token.prefix);
    if (known === undefined) return this.#find(token);
    const judged = this.#judge(token, known);
    return judged?.state === 'active' ? judged : this.#refuse(token, known, judged);
  }

  async #find(token: ApiKeyToken): Promise<Authentication | undefined> {
    const { prefix } = token;
    const began = this.#vault.freshness.generation;
    const found = (await this.#known.get(prefix, () => loadKey(this.#vault, prefix))) ?? 'unknown';
    const judged = this.#judge(token, found);
    if (judged?.state !== 'active') this.#refused.put(prefix, found, began);
    return judged;
  }

  async #refuse<T>({ prefix }: ApiKeyToken, known: KnownKey, judged: T): Promise<T> {
    const began = this.#vault.freshness.generation;
    await loadKey(this.#vault, prefix);
    this.#refused.put(prefix, known, began);
    return judged;
  }

  #judge(token: ApiKeyToken, found: KnownKey | 'unknown'): Authentication | undefined {
    const known = found === 'unknown' ? undefined : found;
    if (!tokenMatches(token, known?.row.hash) || known === undefined) return undefined;
    return { identity: known.identity, state: secretState(known, this.#vault.world.now()) };
  }
}

function secretState({ row, identity: { replacedAt } }: KnownKey, now: number): SecretState {
  const state = apiKeyState(row, now);
  return state === 'active' && replacedAt !== null && replacedAt <= now ? 'replaced' : state;
}

/** The state of a key at `now`; a revoked key stays revoked after its expiry. */
export function apiKeyState(row: Pick<ApiKeyRow, 'expires_at' | 'revoked_at'>, now: number): ApiKeyState {
  if (row.revoked_at !== null) return 'revoked';
  return row.expires_at !== null && row.expires_at <= now ? 'expired' : 'active';
}

/** Whether the text is the raw value of a stored key of any state, before or after its last rotation. */
export async function isStoredKey(reader: Reader, raw: string): Promise<boolean> {
  const token = readToken(raw);
  const key = token && (await findApiKeyByPrefix(reader, token.prefix));
  if (token === undefined || key === undefined) return false;
  return tokenMatches(token, key.hash) || tokenMatches(token, key.previous_hash ?? undefined);
}

const unknownKey: TaggedApiKey & Recorded = {
  ...{ id: 0, name: '', prefix: '', hash: Buffer.alloc(32), scopes: toJson([]), any_certificate: 0 },
  ...{ allowed_networks: toJson([]), expires_at: null, revoked_at: null, tag: Buffer.alloc(32) },
  recorded: Buffer.alloc(96),
  ...{ previous_prefix: null, previous_hash: null, previous_expires_at: null, profiles: null, role: null },
  ...{ client_certificate_id: null, client_certificate: null },
  ...{ labels: null, certificate_labels: null, reach: null },
  ...{ enrollment_id: null, enrollment_request: null },
};

/** Loads a key for the cache; a key without a valid tag counts as unknown. */
async function loadKey(
  { db, log }: DatabaseContext & LogContext,
  prefix: string,
): Promise<KnownKey | undefined> {
  const integrity = requireIntegrity(db);
  const row = await findApiKeyByPrefix(db.reader, prefix);
  if (row === undefined) {
    // Takes the same time as a known key.
    apiKeyFits(integrity, unknownKey, []);
    return undefined;
  }
  const allowlist = parseJson(row.allowlist);
  if (!apiKeyFits(integrity, row, allowlist)) {
    log.error({ api_key: row.id }, 'API key refused: its database row was modified outside the vault');
    return undefined;
  }
  const { expires_at, revoked_at } = row;
  const isCurrent = row.prefix === prefix;
  const hash = isCurrent ? row.hash : row.previous_hash;
  // The vault writes the parts of a previous secret together.
  if (hash === null) return undefined;
  return {
    row: { hash, expires_at, revoked_at },
    identity: {
      kind: 'api-key',
      id: row.id,
      name: row.name,
      prefix,
      scopes: scopesOf(row.scopes),
      certificates: row.any_certificate === 1 ? 'any' : new Set(allowlist.map(([, name]) => name)),
      certificateLabels: parseJsonOr(row.certificate_labels, []),
      profiles: confinementIn(row.profiles),
      role: row.role,
      reach: reachIn(row.reach),
      networks: networksOf(row),
      clientCertificate: boundCertificate(row),
      expiresAt: expires_at,
      replacedAt: isCurrent ? null : row.previous_expires_at,
    },
  };
}

/** Thousands of keys have the same few scopes, so they share the sets. */
const scopeSets = boundedCache<string, ReadonlySet<Scope>>(100);

function scopesOf(text: ApiKeyRow['scopes']): ReadonlySet<Scope> {
  const known = scopeSets.get(text);
  if (known !== undefined) return known;
  const scopes = new Set(parseJson(text).filter(isScope));
  scopeSets.set(text, scopes);
  return scopes;
}

/** A binding of which a part is missing fits no certificate. */
function boundCertificate({ client_certificate_id: id, client_certificate: name }: Binding) {
  return id === null && name === null ? null : { id: id ?? 0, name: name ?? '' };
}

/** Drops unreadable networks; that never widens the list to `any`. */
function networksOf(row: ApiKeyRow): 'any' | readonly IpNetwork[] {
  const texts = parseJson(row.allowed_networks);
  if (texts.length === 0) return 'any';
  return texts.map(parseIpNetwork).filter((network) => network !== undefined);
}
