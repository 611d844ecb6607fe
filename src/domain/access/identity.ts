/** Who is asking, and the one function that says what they may do. */

import { Problem } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import { type IpNetwork, isInside, parseIpAddress } from '../../net/ip-network.ts';

export type ApiKeyIdentity = {
  readonly kind: 'api-key';
  readonly id: number;
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly certificates: 'any' | ReadonlySet<string>;
  /** Where it counts. */
  readonly networks: 'any' | readonly IpNetwork[];
};

/** A person with a session. */
export type AdministratorIdentity = {
  readonly kind: 'administrator';
  readonly name: string;
  readonly session: SessionFacts;
};

/** The session that a person came with; times are UTC milliseconds. */
export type SessionFacts = {
  readonly id: number;
  readonly administratorId: number;
  readonly createdAt: number;
  readonly expiresAt: number;
};

/** Someone whose credentials are valid. */
export type Identity = ApiKeyIdentity | AdministratorIdentity;

/**
 * Whether the identity may do this with the certificate called `name`, or, without a name, with certificates at all.
 * The name may be anything that a caller asks for: a certificate that does not exist is in no allowlist.
 * Administrators may do whatever keys can.
 */
export function allows(identity: Identity, scope: Scope, name?: string): boolean {
  if (identity.kind === 'administrator') return true;
  if (!identity.scopes.has(scope)) return false;
  return name === undefined || identity.certificates === 'any' || identity.certificates.has(name);
}

/** Whether the key counts at this address; one that is not known is nowhere. */
export function isAllowedFrom({ networks }: ApiKeyIdentity, ip: string | undefined): boolean {
  if (networks === 'any') return true;
  const address = ip === undefined ? undefined : parseIpAddress(ip);
  return address !== undefined && isInside(address, networks);
}

/** What a key is told where it does not count. */
export function forbiddenByNetwork(ip: string | undefined): Problem {
  return new Problem('forbidden', {
    detail: `This API key does not count at the address that the request comes from (${ip ?? 'unknown'}).`,
    hint: 'Its networks are those of "vault api-key create --allow-ip".',
  });
}

/** Throws `forbidden` unless `allows`; the answer does not tell whether the certificate exists. */
export function requireScope(identity: Identity, scope: Scope, name?: string): void {
  if (identity.kind === 'administrator' || allows(identity, scope, name)) return;
  if (!identity.scopes.has(scope)) {
    throw new Problem('forbidden', {
      detail: `This API key lacks the scope ${scope}.`,
      hint: 'Make a key that has it with "vault api-key create --scope".',
    });
  }
  throw new Problem('forbidden', {
    detail: 'This certificate is not in the allowlist of the API key.',
    hint: 'Make a key for it with "vault api-key create --certificate".',
  });
}

/** What everybody but an administrator is told where one is needed: one answer for keys, whatever they may do, and for nobody. */
export function administratorNeeded(): Problem {
  return new Problem('forbidden', {
    detail: "This needs an administrator's session; API keys cannot do it.",
    hint: 'Sign in as an administrator.',
  });
}

/** How the audit log calls the identity. */
export function actorName(identity: Identity): string {
  if (identity.kind === 'administrator') return `admin:${identity.name}`;
  return `api-key:${identity.id}:${identity.name}`;
}
