/** Sign-in by OpenID Connect in a browser: to the provider, and back. */
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import { insertOidcUse } from '../../db/tables/access/oidc-uses.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import type { SignIn } from '../access/sign-in.ts';
import type { Attempt } from '../access/sign-in-backoff.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { DeviceSignIn } from './device-sign-in.ts';
import { OidcAdmission, type UseOnce } from './oidc-admission.ts';
import { OidcProvider } from './oidc-provider.ts';
import { openPending, type PendingSignIn, pendingLifetime, sealJson } from './pending-sign-in.ts';
import type { ProviderContext } from './provider-metadata.ts';
import type { ProviderSettings } from './provider-settings.ts';
import { OidcRefusal } from './refusal.ts';
import { finishTest } from './try-sign-in.ts';

export type OidcContext = SecretsContext & LogContext & ProviderContext;

export class OidcSignIn {
  readonly #vault: OidcContext;
  readonly #signIn: SignIn;
  readonly #admission: OidcAdmission;
  readonly provider: OidcProvider;
  /** Sign-in on the command line. */
  readonly device: DeviceSignIn;

  constructor(vault: OidcContext, signIn: SignIn, settings: ProviderSettings) {
    this.#vault = vault;
    this.#signIn = signIn;
    this.#admission = new OidcAdmission(vault, signIn, settings);
    this.provider = new OidcProvider(vault, settings);
    this.device = new DeviceSignIn(vault, signIn, this.#admission, this.provider);
  }

  /** The page of the provider, and the sealed text that the same browser must return. Throws OidcRefusal. */
  async begin(): Promise<{ readonly url: string; readonly sealed: Secret<string> }> {
    const { issuer, clientId } = this.provider.settings;
    const checks = this.provider.newChecks();
    const url = await this.#admission.logged(() => this.provider.pageFor(checks));
    const expiresAt = this.#vault.world.now() + pendingLifetime;
    const sealed = await sealJson(this.#vault, 'sign-in', { ...checks, issuer, clientId, expiresAt });
    return { url, sealed: new Secret(sealed.toString('base64url')) };
  }

  /**
   * Signs in the person whom the provider sent back with `query`, in the browser that returned `sealed`. Throws
   * OidcRefusal, recorded in the audit log.
   */
  async finish(query: string, sealed: string | undefined, visitor: Visitor): Promise<SignedIn> {
    let attempt: Attempt;
    try {
      attempt = this.#signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
    } catch (error) {
      if (error instanceof Problem) throw new OidcRefusal('rate_limited', error.message);
      throw error;
    }
    try {
      const pending = this.#pendingIn(query, sealed);
      const person = await this.#admission.logged(() => this.provider.finish(query, pending));
      const signedIn = await this.#admission.admit(person, this.#useOf(pending), visitor);
      attempt.succeeded();
      return signedIn;
    } catch (error) {
      if (!(error instanceof OidcRefusal) || error.code === 'provider_unreachable') attempt.withdrawn();
      if (error instanceof OidcRefusal) await this.#admission.recordRefusal(visitor.actor, error);
      throw error;
    }
  }

  /** Finishes a test, for which the command on the host waits; false if `query` is not the response to one. */
  finishTest(query: string): Promise<boolean> {
    return finishTest(this.#vault, this.provider, query);
  }

  #pendingIn(query: string, sealed: string | undefined): PendingSignIn {
    const pending =
      sealed === undefined ? undefined : openPending<PendingSignIn>(this.#vault, 'sign-in', sealed);
    const { issuer, clientId } = this.provider.settings;
    if (pending === undefined) throw new OidcRefusal('expired', 'no sign-in begun in this browser');
    if (pending.issuer !== issuer || pending.clientId !== clientId) {
      throw new OidcRefusal('expired', 'sign-in begun with another provider');
    }
    // Before the provider is asked for anything; the library compares it, too.
    if (!sha256(new URLSearchParams(query).get('state') ?? '').equals(sha256(pending.state))) {
      throw new OidcRefusal('expired', 'response to another sign-in');
    }
    return pending;
  }

  #useOf({ state, expiresAt }: PendingSignIn): UseOnce {
    return (writer) =>
      insertOidcUse(writer, sha256(`sign-in ${state}`), { now: this.#vault.world.now(), expiresAt });
  }
}
