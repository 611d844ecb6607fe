/** Puts together what a server and its routes work with. */

import { day } from '../../base/duration.ts';
import type { HashCost } from '../../crypto/secrets/password-hash.ts';
import { Authenticator } from '../../domain/access/authentication.ts';
import { KeyLimits } from '../../domain/access/limits/key-limits.ts';
import { Passwords } from '../../domain/access/passwords.ts';
import { type SessionLimits, Sessions } from '../../domain/access/sessions.ts';
import { SignIn } from '../../domain/access/sign-in.ts';
import { acmeServer } from '../../domain/acme-server/acme-server.ts';
import { defaultKeepDays } from '../../domain/certificates/deleted-certificates.ts';
import { PresentedCertificates } from '../../domain/client-certificates/presented-certificates.ts';
import { KnownLabels } from '../../domain/labels/known-labels.ts';
import { OidcSignIn } from '../../domain/oidc/oidc-sign-in.ts';
import type { ProviderSettings } from '../../domain/oidc/provider-settings.ts';
import { Crls } from '../../domain/private-ca/crls.ts';
import { SecondStep } from '../../domain/second-factors/second-step.ts';
import type { Vault } from '../../domain/vault.ts';
import { Downloads } from '../../domain/versions/downloads.ts';
import { FormatDownloads } from '../../domain/versions/format-downloads.ts';
import { VersionWaits } from '../../domain/versions/version-waits.ts';
import type { IpNetwork } from '../../net/ip-network.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ServerContext } from '../request/server-context.ts';
import type { TlsFacts } from '../tls/tls-endpoint.ts';
import { type ConnectionLimits, defaultConnectionLimits } from './connection-limits.ts';

/** What the listeners of a vault work with. */
export type ListenerContext = ServerContext & { readonly connectionLimits: ConnectionLimits };

/** The settings of a server that can change while it runs. */
export type LiveSettings = {
  readonly trustedProxies: readonly IpNetwork[];
  readonly sessionLimits: SessionLimits;
  readonly secondApproval: boolean;
  readonly keepDeleted: number;
  readonly requireSecondFactor: boolean;
};

/** A context whose settings can be replaced. */
export type LiveContext = ListenerContext & { readonly adopt: (settings: LiveSettings) => void };

/** The context of a new server. */
export function serverContext(
  vault: Vault,
  options: {
    readonly version: string;
    readonly publicUrl: string | undefined;
    /** Of the ACME server: a page. */
    readonly termsOfService?: string | undefined;
    readonly trustedProxies?: readonly IpNetwork[];
    readonly connectionLimits?: Partial<ConnectionLimits>;
    /** Requests that wait for a new version, at a time; 10,000 at most. */
    readonly maxWaits?: number | undefined;
    /** Requests per minute for each API key, as in `KeyLimits`. */
    readonly apiKeyRate?: number | undefined;
    readonly sessionLimits?: SessionLimits;
    readonly secondApproval?: boolean;
    readonly keepDeleted?: number;
    readonly requireSecondFactor?: boolean;
    readonly hashCost?: HashCost;
    readonly tls?: () => TlsFacts | null;
    readonly metrics?: Metrics | undefined;
    readonly oidc?: ProviderSettings | undefined;
  },
): LiveContext {
  let {
    trustedProxies = [],
    secondApproval = false,
    requireSecondFactor = false,
    keepDeleted = defaultKeepDays * day,
  } = options;
  const downloads = new Downloads(vault);
  const sessions = new Sessions(vault, options.sessionLimits);
  const keyLimits = new KeyLimits(vault.world, options.apiKeyRate);
  const passwords = new Passwords(vault.world, options.hashCost);
  const signIn = new SignIn(vault, passwords, sessions, keyLimits);
  return {
    vault,
    authenticator: new Authenticator(vault),
    presented: new PresentedCertificates(vault),
    labels: new KnownLabels(vault),
    keyLimits,
    downloads,
    crls: new Crls(vault),
    acme: acmeServer(vault, options.termsOfService),
    formats: new FormatDownloads(vault, downloads),
    waits: new VersionWaits(vault, options.maxWaits),
    signIn,
    secondStep: new SecondStep(vault, signIn),
    oidc: options.oidc && new OidcSignIn(vault, signIn, options.oidc),
    findSession: (token, carrier) => sessions.find(token, carrier),
    isSessionLive: (id) => sessions.isLive(id),
    version: options.version,
    publicUrl: options.publicUrl,
    get trustedProxies() {
      return trustedProxies;
    },
    get requireSecondFactor() {
      return requireSecondFactor;
    },
    get secondApproval() {
      return secondApproval;
    },
    get keepDeleted() {
      return keepDeleted;
    },
    connectionLimits: { ...defaultConnectionLimits, ...options.connectionLimits },
    tls: options.tls ?? (() => null),
    metrics: options.metrics,
    adopt: (settings) => {
      trustedProxies = settings.trustedProxies;
      secondApproval = settings.secondApproval;
      keepDeleted = settings.keepDeleted;
      requireSecondFactor = settings.requireSecondFactor;
      sessions.limits = settings.sessionLimits;
    },
  };
}
