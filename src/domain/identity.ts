/** Who is asking, and the one function that says what they may do. */
import { Problem } from '../base/problem.ts';
import type { Scope } from '../base/scope.ts';

export type ApiKeyIdentity = {
  readonly kind: 'api-key';
  readonly id: number;
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
  readonly certificates: 'any' | ReadonlySet<string>;
};

/** Someone whose credentials are valid. */
export type Identity = ApiKeyIdentity;

/**
 * Whether the identity may do this with the certificate called `name`, or, without a name, with certificates at all.
 * The name may be anything that a caller asks for: a certificate that does not exist is in no allowlist.
 */
export function allows(identity: Identity, scope: Scope, name?: string): boolean {
  if (!identity.scopes.has(scope)) return false;
  return name === undefined || identity.certificates === 'any' || identity.certificates.has(name);
}

/** Throws `forbidden` unless `allows`; the answer does not tell whether the certificate exists. */
export function demand(identity: Identity, scope: Scope, name?: string): void {
  if (allows(identity, scope, name)) return;
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

/** How the audit log calls the identity. */
export function actorName(identity: Identity): string {
  return `api-key:${identity.id}:${identity.name}`;
}
