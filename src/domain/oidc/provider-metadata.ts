/**
 * The metadata of the OpenID Connect provider and the keys that it signs with, by openid-client and jose. Nothing
 * happens before the first use, so that a provider that is down slows nothing else.
 */
import type { JWTVerifyGetKey } from 'jose';
import type { Configuration, CustomFetch } from 'openid-client';
import { hour, second } from '../../base/duration.ts';
import { shortened } from '../../base/printable-text.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import type { WorldContext } from '../contexts.ts';
import type { ProviderSettings } from './provider-settings.ts';
import { OidcRefusal, refusalFor } from './refusal.ts';

export type ProviderContext = WorldContext & { readonly outbound: Outbound };

export type Discovered = { readonly configuration: Configuration; readonly keys: JWTVerifyGetKey };

/** How far the clocks of vault and provider may differ, in seconds. */
export const clockTolerance = 30;
const requestTimeout = 10 * second;
const maxAnswer = 256 * 1024;
/** How long the metadata of the provider is used, and how long a failure is not repeated. */
const metadataLifetime = hour;
const retryAfter = 5 * second;

/** Loaded at the first use: most starts never need them. */
export const openidClient = () => import('openid-client');
export const joseLibrary = () => import('jose');

export class ProviderMetadata {
  readonly #vault: ProviderContext;
  readonly #settings: ProviderSettings;
  #discovery: { readonly found: Promise<Discovered>; until: number } | undefined;

  constructor(vault: ProviderContext, settings: ProviderSettings) {
    this.#vault = vault;
    this.#settings = settings;
  }

  /** The metadata of the provider: cached, one request at a time, and after a failure a pause. Throws OidcRefusal. */
  async discovered(): Promise<Discovered> {
    const now = this.#vault.world.now();
    if (this.#discovery === undefined || now >= this.#discovery.until) {
      const found = this.#discover();
      const discovery = { found, until: now + metadataLifetime };
      this.#discovery = discovery;
      found.catch(() => {
        discovery.until = this.#vault.world.now() + retryAfter;
      });
    }
    return this.#discovery.found;
  }

  async #discover(): Promise<Discovered> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const client = await openidClient();
    const { createRemoteJWKSet, customFetch } = await joseLibrary();
    const secret = clientSecret.expose();
    const byHeader = client.ClientSecretBasic(secret);
    const byBody = client.ClientSecretPost(secret);
    try {
      const configuration = await client.discovery(
        new URL(issuer),
        clientId,
        { [client.clockTolerance]: clockTolerance },
        (server, ...request) => {
          const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
          // Some providers do not decode the header as RFC 6749 §2.3.1 encodes it.
          return (methods.includes('client_secret_post') ? byBody : byHeader)(server, ...request);
        },
        {
          execute: [
            client.enableNonRepudiationChecks,
            // The settings allow http: only on this host.
            ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
          ],
          [client.customFetch]: this.#fetch,
          timeout: requestTimeout / second,
        },
      );
      const { issuer: found, jwks_uri: keys } = configuration.serverMetadata();
      // The library ignores a slash after the host, and checks no issuer of some URLs.
      if (found !== issuer) throw otherIssuer(found);
      if (keys === undefined) throw new OidcRefusal('invalid', 'no jwks_uri in the metadata of the provider');
      const options = { timeoutDuration: requestTimeout, [customFetch]: this.#fetch };
      return { configuration, keys: createRemoteJWKSet(new URL(keys), options) };
    } catch (error) {
      const found = issuerAtFault(error);
      throw found === undefined ? refusalFor(error) : otherIssuer(found, error);
    }
  }

  /** Requests to the provider keep the rules of outbound connections. */
  readonly #fetch: CustomFetch & ((url: string, options: FetchOptions) => Promise<Response>) = async (
    url: string,
    { method, headers, body, signal }: FetchOptions,
  ) => {
    if (method !== 'GET' && method !== 'POST') throw new Error(`unexpected method ${method}`);
    const answer = await this.#vault.outbound({
      method,
      url,
      headers: Object.fromEntries(new Headers(headers)),
      ...(body != null && { body: String(body) }),
      ca: this.#settings.ca,
      signal,
      timeoutMs: requestTimeout,
      maxBytes: maxAnswer,
    });
    const isEmpty = [204, 205, 304].includes(answer.status);
    return new Response(isEmpty ? null : answer.body.toString('utf8'), answer);
  };
}

/** The issuer in the metadata, if the library has rejected it; its message does not have it. */
function issuerAtFault(error: unknown): unknown {
  const { cause } = error as { readonly cause?: { readonly attribute?: unknown; readonly body?: unknown } };
  return cause?.attribute === 'issuer' ? (cause.body as { readonly issuer?: unknown }).issuer : undefined;
}

function otherIssuer(found: unknown, cause: unknown = new Error('issuers differ')): OidcRefusal {
  const facts = { metadata_issuer: shortened(String(found), 200) };
  return new OidcRefusal('invalid', 'the metadata of the provider has another issuer', facts, cause);
}

type FetchOptions = {
  readonly method: string;
  readonly headers: Record<string, string> | Headers;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
};
