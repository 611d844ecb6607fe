/** What the routes use: the vault, and the parts that keep state between requests. */

import type { SessionCarrier } from '../../crypto/secrets/session-token.ts';
import type { Authenticator } from '../../domain/access/authentication.ts';
import type { AdministratorIdentity } from '../../domain/access/identity.ts';
import type { KeyLimits } from '../../domain/access/limits/key-limits.ts';
import type { SignIn } from '../../domain/access/sign-in.ts';
import type { AcmeServer } from '../../domain/acme-server/acme-server.ts';
import type { PresentedCertificates } from '../../domain/client-certificates/presented-certificates.ts';
import type { KnownLabels } from '../../domain/labels/known-labels.ts';
import type { OidcSignIn } from '../../domain/oidc/oidc-sign-in.ts';
import type { Crls } from '../../domain/private-ca/crls.ts';
import type { SecondStep } from '../../domain/second-factors/second-step.ts';
import type { Vault } from '../../domain/vault.ts';
import type { Downloads } from '../../domain/versions/downloads.ts';
import type { FormatDownloads } from '../../domain/versions/format-downloads.ts';
import type { VersionWaits } from '../../domain/versions/version-waits.ts';
import type { IpNetwork } from '../../net/ip-network.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { TlsFacts } from '../tls/tls-endpoint.ts';

export type ServerContext = {
  readonly vault: Vault;
  readonly authenticator: Authenticator;
  readonly presented: PresentedCertificates;
  /** The labels of certificates, for authorization. */
  readonly labels: KnownLabels;
  readonly keyLimits: KeyLimits;
  readonly downloads: Downloads;
  readonly crls: Crls;
  readonly acme: AcmeServer;
  readonly formats: FormatDownloads;
  /** Requests that wait for a new version. */
  readonly waits: VersionWaits;
  readonly signIn: SignIn;
  readonly secondStep: SecondStep;
  /** Undefined if no provider is set up. */
  readonly oidc: OidcSignIn | undefined;
  /** The session with this token, if it is presented as it was issued. */
  readonly findSession: (
    token: string,
    carrier: SessionCarrier,
  ) => Promise<AdministratorIdentity | undefined>;
  /** Whether the session with this id is active; the check does not count as use. */
  readonly isSessionLive: (id: number) => Promise<boolean>;
  /** The version of the product. */
  readonly version: string;
  /** The public URL of the vault, without a trailing slash; taken from the request's host if undefined. */
  readonly publicUrl: string | undefined;
  /** Proxies that are trusted to report the client. */
  readonly trustedProxies: readonly IpNetwork[];
  /** Whether people with a password can do nothing before they have set up a second factor. */
  readonly requireSecondFactor: boolean;
  /** Whether destructive changes need the approval of a second administrator. */
  readonly secondApproval: boolean;
  /** How long deleted certificates are kept, in milliseconds. */
  readonly keepDeleted: number;
  /** The vault's own HTTPS certificate; null if it serves plain HTTP. */
  readonly tls: () => TlsFacts | null;
  /** Undefined if metrics are disabled. */
  readonly metrics: Metrics | undefined;
};
