/**
 * The OpenID Connect provider as a relying party uses it, by openid-client: the code flow, the device flow and logout
 * tokens. Nothing happens before the first sign-in, so that a provider that is down slows nothing else.
 */
import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from 'openid-client';
import { minute, second } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { isSecureUrl } from '../../base/secure-url.ts';
import { type Claims, mergedClaims, roleValuesIn } from './claims.ts';
import {
  clockTolerance,
  joseLibrary,
  openidClient,
  type ProviderContext,
  ProviderMetadata,
} from './provider-metadata.ts';
import { callbackPath, type ProviderSettings } from './provider-settings.ts';
import { OidcRefusal, refusalFor } from './refusal.ts';

/** The checks of one sign-in: what the response of the provider must match. */
export type SignInChecks = { readonly state: string; readonly nonce: string; readonly verifier: string };

/** A person that the provider has authenticated. */
export type Authenticated = {
  readonly subject: string;
  /** The session at the provider, if it has said so. */
  readonly sid: string | undefined;
  readonly claims: Claims;
};

/** A device authorization that the provider has begun (RFC 8628 §3.2). */
export type DeviceAuthorization = {
  readonly deviceCode: Secret<string>;
  /** What the person types or compares at the provider. */
  readonly userCode: string;
  readonly verificationUri: string;
  /** The same page with the code filled in. */
  readonly verificationUriComplete: string | undefined;
  /** How long it is valid, in milliseconds. */
  readonly lifetime: number;
  /** How long to wait between requests for its result, in milliseconds. */
  readonly interval: number;
};

/** The result of a device authorization: a person, or that they have not confirmed it yet. */
export type DeviceResult = Authenticated | 'pending' | 'slow_down';

/** Whose sessions end: of one session at the provider, of a person, or both. */
export type Logout = {
  readonly jti: string;
  /** UTC milliseconds after which the token is too old. */
  readonly expiresAt: number;
  readonly sid: string | undefined;
  readonly subject: string | undefined;
};

const maxLogoutAge = 5 * minute;
const maxText = 255;

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
const usualInterval = 5 * second;
const [maxUserCode, maxDeviceCode, maxUrl] = [64, 4096, 2000];

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout';

/** Signatures by keys of the provider. One by a shared secret, or none, is refused. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

export class OidcProvider {
  readonly #vault: ProviderContext;
  readonly settings: ProviderSettings;
  readonly #metadata: ProviderMetadata;

  constructor(vault: ProviderContext, settings: ProviderSettings) {
    this.#vault = vault;
    this.settings = settings;
    this.#metadata = new ProviderMetadata(vault, settings);
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
    const client = await openidClient();
    const { configuration } = await this.#metadata.discovered();
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
    const client = await openidClient();
    const { configuration } = await this.#metadata.discovered();
    const response = new URL(`${this.redirectUri}?${query}`);
    try {
      const tokens = await client.authorizationCodeGrant(configuration, response, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      return await this.#authenticated(configuration, tokens);
    } catch (error) {
      throw refusalFor(error);
    }
  }

  /** Whether the provider offers device authorizations. Throws OidcRefusal. */
  async offersDeviceFlow(): Promise<boolean> {
    const { configuration } = await this.#metadata.discovered();
    return configuration.serverMetadata().device_authorization_endpoint !== undefined;
  }

  /** Begins a device authorization; undefined if the provider does not offer any. Throws OidcRefusal. */
  async beginDevice(): Promise<DeviceAuthorization | undefined> {
    const client = await openidClient();
    const { configuration } = await this.#metadata.discovered();
    if (!(await this.offersDeviceFlow())) return undefined;
    try {
      const { scope } = this.settings;
      const begun = await client.initiateDeviceAuthorization(configuration, { scope });
      const { device_code: code, user_code: userCode, verification_uri_complete: complete } = begun;
      const urls = [begun.verification_uri, ...(complete === undefined ? [] : [complete])];
      if (
        code.length > maxDeviceCode ||
        userCode.length > maxUserCode ||
        !/^[\x20-\x7e]+$/.test(userCode) ||
        !urls.every((url) => url.length <= maxUrl && isSecureUrl(url))
      ) {
        throw new OidcRefusal('invalid', 'invalid device authorization');
      }
      return {
        deviceCode: new Secret(code),
        userCode,
        verificationUri: begun.verification_uri,
        verificationUriComplete: complete,
        lifetime: begun.expires_in * second,
        interval: begun.interval === undefined ? usualInterval : begun.interval * second,
      };
    } catch (error) {
      throw refusalFor(error);
    }
  }

  /** Asks once for the result of a device authorization, and checks the ID token. Throws OidcRefusal. */
  async pollDevice(deviceCode: Secret<string>): Promise<DeviceResult> {
    const client = await openidClient();
    const { configuration } = await this.#metadata.discovered();
    try {
      const parameters = { device_code: deviceCode.expose() };
      // The library's own function for this flow repeats the request until there is a result.
      const tokens = await client.genericGrantRequest(configuration, deviceGrant, parameters);
      return await this.#authenticated(configuration, tokens);
    } catch (error) {
      const { error: said } = error as { error?: unknown };
      if (said === 'authorization_pending') return 'pending';
      if (said === 'slow_down') return 'slow_down';
      throw refusalFor(error);
    }
  }

  /** Checks a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6). Throws OidcRefusal. */
  async readLogout(token: string): Promise<Logout> {
    const { jwtVerify } = await joseLibrary();
    const { keys } = await this.#metadata.discovered();
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

  async #authenticated(
    configuration: Configuration,
    tokens: TokenEndpointResponse & TokenEndpointResponseHelpers,
  ): Promise<Authenticated> {
    const idToken = tokens.claims();
    if (idToken === undefined) throw new OidcRefusal('invalid', 'no ID token');
    this.#refuseFuture(idToken.iat);
    const { sub: subject, sid } = idToken;
    if (subject.length > maxText) throw new OidcRefusal('invalid', 'subject too long');
    const claims = this.#isEnough(idToken)
      ? idToken
      : mergedClaims(idToken, await this.#userinfo(configuration, tokens.access_token, subject));
    return { subject, sid: shortText(sid), claims };
  }

  #isEnough(idToken: Claims): boolean {
    const isNamed = idToken.preferred_username !== undefined || idToken.email !== undefined;
    return isNamed && roleValuesIn(idToken, this.settings.roles).length > 0;
  }

  async #userinfo(configuration: Configuration, accessToken: string, subject: string): Promise<Claims> {
    if (configuration.serverMetadata().userinfo_endpoint === undefined) return {};
    return { ...(await (await openidClient()).fetchUserInfo(configuration, accessToken, subject)) };
  }

  #refuseFuture(issuedAt: number): void {
    if (issuedAt * second > this.#vault.world.now() + clockTolerance * second) {
      throw new OidcRefusal('invalid', 'ID token issued in the future');
    }
  }
}

/** A claim that is short enough to be stored. */
function shortText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= maxText ? value : undefined;
}

function isLogoutEvent(events: unknown): boolean {
  return typeof events === 'object' && events !== null && Object.hasOwn(events, logoutEvent);
}
