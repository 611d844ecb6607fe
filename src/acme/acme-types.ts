/** The resources of RFC 8555 as the vault uses them: names are those of the RFC, times are UTC milliseconds. */
import type { Log } from '../base/log.ts';
import type { Secret } from '../base/secret.ts';
import type { World } from '../base/world.ts';
import type { Outbound } from '../net/outbound-http.ts';

export type AcmeContext = { readonly world: World; readonly outbound: Outbound; readonly log: Log };

export type AcmeServer = {
  /** Requests are sent only to the origin of this URL. */
  readonly directoryUrl: string;
  /** PEM certificates that replace the public CAs. */
  readonly ca?: string | undefined;
};

/** The directory (§7.1.1) with its `meta` object. */
export type AcmeDirectory = {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly revokeCert: string | undefined;
  readonly keyChange: string | undefined;
  /** RFC 9773. */
  readonly renewalInfo: string | undefined;
  readonly termsOfService: string | undefined;
  readonly website: string | undefined;
  readonly externalAccountRequired: boolean;
  /** Profile names and their descriptions; empty if the CA has none. */
  readonly profiles: Readonly<Record<string, string>>;
};

/** The signer: the account key (PKCS#8) and the account URL, which is its `kid`. */
export type AcmeAccount = { readonly privateKey: Secret; readonly url: string };

export type ExternalAccount = { readonly kid: string; readonly hmacKey: Secret };

/** An identifier of an order (RFC 8555 §9.7.7, RFC 8738); a wildcard keeps its `*.`. */
export type AcmeIdentifier = { readonly type: 'dns' | 'ip'; readonly value: string };

export type AcmeOrderStatus = 'pending' | 'ready' | 'processing' | 'valid' | 'invalid';

export type AcmeOrder = {
  readonly url: string;
  readonly status: AcmeOrderStatus;
  readonly authorizations: readonly string[];
  readonly finalize: string;
  readonly certificate: string | undefined;
  readonly expires: number | undefined;
  readonly profile: string | undefined;
  readonly replaces: string | undefined;
  /** Why the order is invalid. */
  readonly error: AcmeProblem | undefined;
  /** Minimum wait before the next request, in milliseconds from now. */
  readonly retryAfterMs: number | undefined;
};

export type AcmeAuthorizationStatus = 'pending' | 'valid' | 'invalid' | 'deactivated' | 'expired' | 'revoked';

export type AcmeAuthorization = {
  readonly url: string;
  readonly status: AcmeAuthorizationStatus;
  /** Without `*.`; see `wildcard`. */
  readonly identifier: AcmeIdentifier;
  readonly wildcard: boolean;
  readonly challenges: readonly AcmeChallenge[];
  readonly retryAfterMs: number | undefined;
};

export type AcmeChallenge = {
  /** An open set: `http-01`, `dns-01`, `tls-alpn-01`, `dns-persist-01` … */
  readonly type: string;
  readonly url: string;
  readonly status: 'pending' | 'processing' | 'valid' | 'invalid';
  /** Missing for some types. */
  readonly token: string | undefined;
  readonly error: AcmeProblem | undefined;
  /** dns-persist-01: the account URI for the record. Copied, never derived. */
  readonly accountUri: string | undefined;
  readonly issuerDomainNames: readonly string[];
};

/** A problem document (RFC 9457, RFC 8555 §6.7), stored for people. */
export type AcmeProblem = {
  /** `urn:ietf:params:acme:error:rateLimited`; `about:blank` if missing. */
  readonly type: string;
  readonly detail: string;
  readonly status: number | undefined;
  /** A web page for people, with userActionRequired. */
  readonly instance: string | undefined;
  readonly subproblems: readonly {
    readonly type: string;
    readonly detail: string;
    readonly identifier: string | undefined;
  }[];
};

export type NewOrder = {
  readonly identifiers: readonly AcmeIdentifier[];
  readonly profile?: string | undefined;
  /** The ARI id of the certificate to replace (RFC 9773 §5). */
  readonly replaces?: string | undefined;
};

/** The suggestion of the CA when to renew (RFC 9773 §4.2). */
export type RenewalInfo = {
  readonly windowStart: number;
  readonly windowEnd: number;
  readonly explanationUrl: string | undefined;
  /** When to query again, in milliseconds from now, limited to 1 minute to 24 hours. */
  readonly retryAfterMs: number;
};
