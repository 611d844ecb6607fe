/** From a raw API key to an identity. Unknown, wrong, revoked and expired keys take the same path and end the same. */

import { LRUCache } from 'lru-cache';
import { isScope, type Scope } from '../../base/scope.ts';
import { type ApiKeyToken, readToken, tokenMatches } from '../../crypto/api-key-token.ts';
import { type Allowed, apiKeyFits, type TaggedApiKey } from '../../db/audit/row-tags.ts';
import { requireIntegrity } from '../../db/database.ts';
import { type ApiKeyRow, findApiKeyByPrefix } from '../../db/tables/api-keys.ts';
import { type IpNetwork, parseIpNetwork } from '../../net/ip-network.ts';
import { FreshCache, type Freshness } from '../changes/freshness.ts';
import type { DatabaseContext, LogContext, LoggedContext } from '../contexts.ts';
import type { ApiKeyIdentity } from './identity.ts';

export type Authentication = {
  /** The key that was presented, also when it is revoked or expired, so that the refusal can be recorded. */
  readonly identity: ApiKeyIdentity;
  readonly state: ApiKeyState;
};

export type ApiKeyState = 'active' | 'expired' | 'revoked';

type KnownKey = {
  readonly row: Pick<ApiKeyRow, 'hash' | 'expires_at' | 'revoked_at'>;
  readonly identity: ApiKeyIdentity;
};

const rememberedKeys = 10_000;

/** Of strangers, who must not push out the keys of the others. */
const rememberedRefusals = 10_000;

type AuthenticationContext = LoggedContext & { readonly freshness: Freshness };

export class Authenticator {
  readonly #vault: AuthenticationContext;
  readonly #known: FreshCache<string, KnownKey>;
  /** What was found under each prefix that was presented with a key that does not count. */
  readonly #refused: FreshCache<string, KnownKey | 'nobody'>;

  constructor(vault: AuthenticationContext) {
    this.#vault = vault;
    this.#known = new FreshCache(vault.freshness, rememberedKeys);
    this.#refused = new FreshCache(vault.freshness, rememberedRefusals);
  }

  /**
   * The key behind a raw value, or undefined where it is no key's; at once where what is known of it is remembered. The first
   * refusal under a prefix costs one look into the database, also where the key was remembered, and those after it none:
   * whether there is such a key cannot be told from the time.
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
    const found = (await this.#known.get(prefix, () => loadKey(this.#vault, prefix))) ?? 'nobody';
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

  #judge(token: ApiKeyToken, found: KnownKey | 'nobody'): Authentication | undefined {
    const known = found === 'nobody' ? undefined : found;
    if (!tokenMatches(token, known?.row.hash) || known === undefined) return undefined;
    return { identity: known.identity, state: apiKeyState(known.row, this.#vault.world.now()) };
  }
}

/** Whether a key counts at `now`; revocation outlasts expiry. */
export function apiKeyState(row: Pick<ApiKeyRow, 'expires_at' | 'revoked_at'>, now: number): ApiKeyState {
  if (row.revoked_at !== null) return 'revoked';
  return row.expires_at !== null && row.expires_at <= now ? 'expired' : 'active';
}

const unknownKey: TaggedApiKey = {
  ...{ id: 0, name: '', prefix: '', hash: Buffer.alloc(32), scopes: '[]', any_certificate: 0 },
  ...{ allowed_networks: '[]', expires_at: null, revoked_at: null, tag: Buffer.alloc(32) },
};

/** A key as it is cached; a key without a valid tag counts as unknown. */
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
  const allowlist = JSON.parse(row.allowlist) as Allowed[];
  if (!apiKeyFits(integrity, row, allowlist)) {
    log.error({ api_key: row.id }, 'API key refused: its database row was modified outside the vault');
    return undefined;
  }
  const { hash, expires_at, revoked_at } = row;
  return {
    row: { hash, expires_at, revoked_at },
    identity: {
      kind: 'api-key',
      id: row.id,
      name: row.name,
      scopes: scopesOf(row.scopes),
      certificates: row.any_certificate === 1 ? 'any' : new Set(allowlist.map(([, name]) => name)),
      networks: networksOf(row),
    },
  };
}

/** Thousands of keys have the same few scopes, and share one set of them. */
const scopeSets = new LRUCache<string, ReadonlySet<Scope>>({ max: 100 });

function scopesOf(text: string): ReadonlySet<Scope> {
  const known = scopeSets.get(text);
  if (known !== undefined) return known;
  const scopes = new Set((JSON.parse(text) as string[]).filter(isScope));
  scopeSets.set(text, scopes);
  return scopes;
}

/** What cannot be read is no network, and never anywhere. */
function networksOf(row: ApiKeyRow): 'any' | readonly IpNetwork[] {
  const texts = JSON.parse(row.allowed_networks) as string[];
  if (texts.length === 0) return 'any';
  return texts.map(parseIpNetwork).filter((network) => network !== undefined);
}
