/** The identity of a caller, and the one function that says what it may do. */

import { hasAnyLabel } from '../../base/object-label.ts';
import { Problem } from '../../base/problem.ts';
import { includesRole, type Role } from '../../base/role.ts';
import { type Scope, scopes } from '../../base/scope.ts';
import type { Secret } from '../../base/secret.ts';
import { type IpNetwork, isInside, parseIpAddress } from '../../net/ip-network.ts';
import type { Actor } from '../audit/audit.ts';
import type { BoundCertificate } from '../client-certificates/presented-certificates.ts';
import { type Reach, requireReach } from '../labels/reach.ts';
import type { Confinement } from './profile-confinement.ts';

export type ApiKeyIdentity = {
  readonly kind: 'api-key';
  readonly id: number;
  readonly name: string;
  /** The public part of the presented secret. */
  readonly prefix: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly certificates: 'any' | ReadonlySet<string>;
  /** It may access certificates with any of these labels, too. */
  readonly certificateLabels: readonly string[];
  /** The profiles of private CAs that it may have certificates issued with. */
  readonly profiles: Confinement;
  /** What it may administer. */
  readonly role: Role | null;
  /** What confines all of this. */
  readonly reach: Reach;
  /** The networks it works from. */
  readonly networks: 'any' | readonly IpNetwork[];
  /** The certificate that its client presents in TLS; null if it needs none. */
  readonly clientCertificate: BoundCertificate | null;
  /** When the key expires (UTC milliseconds); null for never. */
  readonly expiresAt: number | null;
  /** When the presented secret ends because a rotation replaced it; null for the current one. */
  readonly replacedAt: number | null;
};

/** `oidc` is OpenID Connect: no password, and the identity provider decides the role. */
export const signInMethods = ['password', 'oidc'] as const;

export type SignInMethod = (typeof signInMethods)[number];

/** How the administrator of a row signs in. */
export function signInMethodOf({ oidc_subject }: { readonly oidc_subject: string | null }): SignInMethod {
  return oidc_subject === null ? 'password' : 'oidc';
}

/** An administrator with a session. */
export type AdministratorIdentity = {
  readonly kind: 'administrator';
  readonly name: string;
  readonly role: Role;
  readonly reach: Reach;
  /** The profiles of private CAs that they may have certificates issued with. */
  readonly profiles: Confinement;
  /** Those of the role, without private keys where sessions never get any. */
  readonly scopes: ReadonlySet<Scope>;
  /** How they sign in. */
  readonly signIn: SignInMethod;
  /** Whether they have one in the vault; always false for people of an identity provider. */
  readonly hasSecondFactor: boolean;
  readonly session: SessionFacts;
};

/** The session of a request; times are UTC milliseconds. */
export type SessionFacts = {
  readonly id: number;
  readonly administratorId: number;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** A new session; the token belongs only in the cookie, or in the response to the program that signed in. */
export type SignedIn = { readonly identity: AdministratorIdentity; readonly token: Secret<string> };

/** The client of a sign-in. */
export type Visitor = {
  readonly actor: Actor;
  readonly userAgent: string | undefined;
  /** The session at the OpenID Connect provider. */
  readonly oidcSid?: string | undefined;
  /** What the person used besides or instead of a password, for the audit log. */
  readonly secondFactor?: 'totp' | 'recovery_code' | 'passkey' | undefined;
  /** Set for a program, whose session works as bearer token only; for the audit log. */
  readonly method?: 'device_flow' | undefined;
};

/** A caller with valid credentials. */
export type Identity = ApiKeyIdentity | AdministratorIdentity;

/** The role that people need for what a scope allows. */
const rolesOfScopes: Readonly<Record<Scope, Role>> = {
  'certificates:read': 'viewer',
  'renewals:trigger': 'operator',
  'certificates:sign': 'operator',
  'private_keys:read': 'admin',
};

/** The scopes that a role includes. */
export function scopesOfRole(role: Role): Scope[] {
  return scopes.filter((scope) => includesRole(role, rolesOfScopes[scope]));
}

/** Whether the key works from this address; an unknown address is in no network. */
export function isAllowedFrom({ networks }: ApiKeyIdentity, ip: string | undefined): boolean {
  if (networks === 'any') return true;
  const address = ip === undefined ? undefined : parseIpAddress(ip);
  return address !== undefined && isInside(address, networks);
}

/** The error for a key used outside its networks. */
export function forbiddenByNetwork(ip: string | undefined): Problem {
  return new Problem('forbidden', {
    detail: `This API key may not be used from the address ${ip ?? 'unknown'}.`,
    hint: 'The networks of a key are set with "vault api-key update --allow-ip".',
  });
}

/**
 * Throws `forbidden` unless the identity has this scope for the certificate `name`, or without a name, for any. The
 * name may be any text from a request: a certificate that does not exist is in no allowlist, and the error does not
 * reveal whether it exists. `labels` are those of the certificate, needed if `dependsOnLabels`.
 */
export function requireScope(
  identity: Identity,
  scope: Scope,
  name?: string,
  labels: readonly string[] = [],
): void {
  if (identity.kind === 'administrator') {
    requireRole(identity, rolesOfScopes[scope]);
    if (!identity.scopes.has(scope)) throw keysHidden();
    if (name !== undefined) requireReach(identity, labels);
    return;
  }
  if (!identity.scopes.has(scope)) {
    throw new Problem('forbidden', {
      detail: `This API key lacks the scope ${scope}.`,
      hint: 'Create a key with this scope: vault api-key create --scope',
    });
  }
  if (name === undefined) return;
  if (isListed(identity, name) || hasAnyLabel(labels, identity.certificateLabels)) {
    requireReach(identity, labels);
    return;
  }
  throw new Problem('forbidden', {
    detail: 'This certificate is not in the allowlist of the API key.',
    hint: 'Create a key for this certificate: vault api-key create --certificate',
  });
}

/** Whether the labels of the certificate `name` decide if the identity may access it. */
export function dependsOnLabels(identity: Identity, name: string): boolean {
  if (identity.reach !== 'any') return true;
  if (identity.kind === 'administrator' || identity.certificateLabels.length === 0) return false;
  return !isListed(identity, name);
}

function isListed({ certificates }: ApiKeyIdentity, name: string): boolean {
  return certificates === 'any' || certificates.has(name);
}

/** Throws `forbidden` unless the identity has this role or one that includes it. */
export function requireRole({ kind, role }: Pick<Identity, 'kind' | 'role'>, needed: Role): void {
  if (role === null) throw administratorNeeded();
  if (includesRole(role, needed)) return;
  const [who, hint] =
    kind === 'api-key'
      ? ['this API key has', 'The role of a key is set with "vault api-key update --role".']
      : ['yours is', 'The role of an administrator is set with "vault admin update --role".'];
  throw new Problem('forbidden', {
    detail: `This request requires the role ${needed}; ${who} ${role}.`,
    hint,
  });
}

/** The error for a session where `hide-private-keys` is set. */
export function keysHidden(): Problem {
  return new Problem('forbidden', {
    detail: 'Console sessions cannot read private keys (setting hide-private-keys).',
    hint: 'Use "vault certificate export" on the vault\'s host, or an API key.',
  });
}

/** The error where no API key will do, of any role. */
export function sessionNeeded(): Problem {
  return new Problem('forbidden', {
    detail: 'This request requires an administrator session; API keys are not accepted.',
    hint: 'Sign in as an administrator.',
  });
}

/** The error for the token of a program whose session has ended, or never existed. */
export function sessionEnded(code: 'unauthenticated' | 'forbidden'): Problem {
  return new Problem(code, {
    detail: 'The session has expired or was ended.',
    hint: 'Sign in again: vault login --oidc',
  });
}

/** The error where an administrator is needed: the same for every API key without a role and for anonymous callers. */
export function administratorNeeded(): Problem {
  return new Problem('forbidden', {
    detail: 'This request requires an administrator session, or an API key with a role.',
    hint: 'Sign in as an administrator, or create a key: vault api-key create --role',
  });
}

/** The name of the identity in the audit log. */
export function actorName(identity: Identity): string {
  if (identity.kind === 'administrator') return `admin:${identity.name}`;
  return `api-key:${identity.id}:${identity.name}`;
}
