/**
 * The OpenID Connect provider as a relying party uses it, by openid-client: discovery, the code flow, logout tokens.
 * Nothing happens before the first sign-in, so that a provider that is down slows nothing else.
 */
import type { JWTVerifyGetKey } from 'jose';
import type { Configuration, CustomFetch } from 'openid-client';
import { hour, minute, second } from '../../base/duration.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import type { WorldContext } from '../contexts.ts';
import { type Claims, mergedClaims, roleValuesIn } from './claims.ts';
import { callbackPath, type ProviderSettings } from './provider-settings.ts';
import { OidcRefusal, refusalFor } from './refusal.ts';

export type ProviderContext = WorldContext & { readonly outbound: Outbound };

/** The checks of one sign-in: what the response of the provider must match. */
export type SignInChecks = { readonly state: string; readonly nonce: string; readonly verifier: string };

/** A person that the provider has authenticated. */
export type Authenticated = {
  readonly subject: string;
  /** The session at the provider, if it has said so. */
  readonly sid: string | undefined;
  readonly claims: Claims;
};

/** Whose sessions end: of one session at the provider, of a person, or both. */
export type Logout = {
  readonly jti: string;
  /** UTC milliseconds after which the token is too old. */
  readonly expiresAt: number;
  readonly sid: string | undefined;
  readonly subject: string | undefined;
};

/** How far the clocks of vault and provider may differ, in seconds. */
const clockTolerance = 30;
const requestTimeout = 10 * second;
const maxAnswer = 256 * 1024;
/** How long the metadata of the provider is used, and how long a failure is not repeated. */
const metadataLifetime = hour;
const retryAfter = 5 * second;
const maxLogoutAge = 5 * minute;
const maxText = 255;

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

/** Signatures by keys of the provider. One by a shared secret, or none, is refused. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

type Discovered = { readonly configuration: Configuration; readonly keys: JWTVerifyGetKey };

/** Loaded at the first use: most starts never need them. */
const library = () => import('openid-client');
const joseLibrary = () => import('jose');

export class OidcProvider {
  readonly #vault: ProviderContext;
  readonly settings: ProviderSettings;
  #discovery: { readonly found: Promise<Discovered>; until: number } | undefined;

  constructor(vault: ProviderContext, settings: ProviderSettings) {
    this.#vault = vault;
    this.settings = settings;
  }

  get redirectUri(): string {
    return this.settings.publicUrl + callbackPath;
  }

  /** The checks of a new sign-in. */
  newChecks(): SignInChecks {
    const random = () => this.#vault.world.randomBytes(32).toString('base64url');
    return { state: random(), nonce: random(), verifier: random() };
  }

  /** The page of the provider at which a sign-in with these checks begins. Throws OidcRefusal. */
  async pageFor(checks: SignInChecks): Promise<string> {
    const client = await library();
    const { configuration } = await this.#discovered();
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: this.redirectUri,
      scope: this.settings.scope,
      response_type: 'code',
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
      code_challenge_method: 'S256',
    });
    return url.href;
  }

  /** Exchanges the code in the `query` of the callback, and checks the ID token. Throws OidcRefusal. */
  async finish(query: string, { state, nonce, verifier }: SignInChecks): Promise<Authenticated> {
    const client = await library();
    const { configuration } = await this.#discovered();
    const response = new URL(`${this.redirectUri}?${query}`);
    try {
      const tokens = await client.authorizationCodeGrant(configuration, response, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const idToken = tokens.claims();
      if (idToken === undefined) throw new OidcRefusal('invalid', 'no ID token');
      this.#refuseFuture(idToken.iat);
      const { sub: subject, sid } = idToken;
      if (subject.length > maxText) throw new OidcRefusal('invalid', 'subject too long');
      const claims = this.#isEnough(idToken)
        ? idToken
        : mergedClaims(idToken, await this.#userinfo(configuration, tokens.access_token, subject));
      return { subject, sid: shortText(sid), claims };
    } catch (error) {
      throw refusalFor(error);
    }
  }

  /** Checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6). Throws OidcRefusal. */
  async readLogout(token: string): Promise<Logout> {
    const { jwtVerify } = await joseLibrary();
    const { keys } = await this.#discovered();
    const { issuer, clientId } = this.settings;
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience: clientId,
        algorithms,
        clockTolerance,
        maxTokenAge: maxLogoutAge / second,
        currentDate: new Date(this.#vault.world.now()),
        requiredClaims: ['iat', 'jti', 'events'],
      });
      const { jti, iat = 0, events, nonce } = payload;
      const [subject, sid] = [shortText(payload.sub), shortText(payload.sid)];
      if (nonce !== undefined || !isLogoutEvent(events))
        throw new OidcRefusal('invalid', 'not a logout token');
      if (subject === undefined && sid === undefined) throw new OidcRefusal('invalid', 'neither sub nor sid');
      if (typeof jti !== 'string' || jti === '') throw new OidcRefusal('invalid', 'no jti');
      return { jti, expiresAt: iat * second + maxLogoutAge + clockTolerance * second, sid, subject };
    } catch (error) {
      throw refusalFor(error);
    }
  }

  /** The metadata of the provider: cached, one request at a time, and after a failure a pause. Throws OidcRefusal. */
  async #discovered(): Promise<Discovered> {
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
    const { issuer, clientId, clientSecret } = this.settings;
    const client = await library();
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
      const { jwks_uri: keys } = configuration.serverMetadata();
      if (keys === undefined) throw new OidcRefusal('invalid', 'no jwks_uri in the metadata of the provider');
      const options = { timeoutDuration: requestTimeout, [customFetch]: this.#fetch };
      return { configuration, keys: createRemoteJWKSet(new URL(keys), options) };
    } catch (error) {
      throw refusalFor(error);
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
      ca: this.settings.ca,
      signal,
      timeoutMs: requestTimeout,
      maxBytes: maxAnswer,
    });
    const isEmpty = [204, 205, 304].includes(answer.status);
    return new Response(isEmpty ? null : answer.body.toString('utf8'), answer);
  };

  #isEnough(idToken: Claims): boolean {
    const isNamed = idToken.preferred_username !== undefined || idToken.email !== undefined;
    return isNamed && roleValuesIn(idToken, this.settings.roles).length > 0;
  }

  async #userinfo(configuration: Configuration, accessToken: string, subject: string): Promise<Claims> {
    if (configuration.serverMetadata().userinfo_endpoint === undefined) return {};
    return { ...(await (await library()).fetchUserInfo(configuration, accessToken, subject)) };
  }

  #refuseFuture(issuedAt: number): void {
    if (issuedAt * second > this.#vault.world.now() + clockTolerance * second) {
      throw new OidcRefusal('invalid', 'ID token issued in the future');
    }
  }
}

type FetchOptions = {
  readonly method: string;
  readonly headers: Record<string, string> | Headers;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
};

/** A claim that is short enough to be stored. */
function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxText ? value : undefined;
}

function isLogoutEvent(events: unknown): boolean {
  return typeof events === 'object' && events !== null && Object.hasOwn(events, logoutEvent);
}
