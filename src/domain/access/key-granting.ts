/** No one creates an API key with more rights than their own. */
import { Problem } from '../../base/problem.ts';
import { includesRole } from '../../base/role.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { isInside, parseIpNetwork } from '../../net/ip-network.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import type { ApiKeyIdentity, Identity } from './identity.ts';

/** Throws `forbidden` if a key with these settings could do something that the identity may not. */
export function requireGrantable(identity: Identity, input: CreateApiKeyInput): void {
  requireKeyless(identity, input);
  const { role, scopes } = identity;
  // Who may create administrators may do everything.
  if (role === 'admin') return;
  const missing = input.scopes.find((scope) => !scopes.has(scope));
  if (missing !== undefined) throw refusal(`the scope ${missing}`);
  if (input.role !== null && (role === null || !includesRole(role, input.role))) {
    throw refusal(`the role ${input.role}`);
  }
  if (identity.kind === 'api-key') requireWithinKey(identity, input);
}

/** What a key may do with private keys: itself, or by a key that it creates. */
export type KeyRights = Pick<CreateApiKeyInput, 'scopes' | 'role'>;

/** Throws `forbidden` for a session that gets no private keys, if it could get some by a key with these rights. */
export function requireKeyless(identity: Identity, { scopes, role }: KeyRights): void {
  if (identity.kind === 'api-key' || identity.role !== 'admin') return;
  if (identity.scopes.has('private_keys:read')) return;
  if (role !== 'admin' && !scopes.includes('private_keys:read')) return;
  throw new Problem('forbidden', {
    detail:
      'Console sessions cannot create, change or rotate an API key that can read private keys (setting hide-private-keys).',
    hint: 'Use "vault api-key" on the vault\'s host, or an API key with the role admin.',
  });
}

/** Throws `forbidden` if a key with these settings is less confined than the one that creates it. */
function requireWithinKey(
  { certificates, networks, profiles, clientCertificate, expiresAt }: ApiKeyIdentity,
  input: CreateApiKeyInput,
): void {
  if (certificates !== 'any') {
    const other =
      input.certificates === 'any' ? '*' : input.certificates.find((name) => !certificates.has(name));
    if (other !== undefined) throw refusal(`the certificate ${other}`);
  }
  if (networks !== 'any') {
    const isWithin = (text: string) => {
      const network = parseIpNetwork(text);
      return (
        network !== undefined &&
        networks.some((known) => known.length <= network.length && isInside(network, [known]))
      );
    };
    const other =
      input.allowed_networks.length === 0 ? '*' : input.allowed_networks.find((one) => !isWithin(one));
    if (other !== undefined) throw refusal(`the network ${other}`);
  }
  if (profiles !== 'any' && input.scopes.includes('certificates:sign')) {
    const other = input.profiles.length === 0 ? '*' : input.profiles.find((one) => !profiles.has(one));
    if (other !== undefined) throw refusal(`the profile ${other}`);
  }
  if (clientCertificate !== null && input.client_certificate !== clientCertificate.name) {
    throw refusal(`the right to work without the client certificate ${clientCertificate.name}`);
  }
  if (expiresAt !== null && (input.expires_at ?? Number.POSITIVE_INFINITY) > expiresAt) {
    throw refusal(`an expiry after ${formatTimestamp(expiresAt)}`);
  }
}

function refusal(what: string): Problem {
  return new Problem('forbidden', {
    detail: `A key cannot get ${what} from you: you do not have it yourself.`,
    hint: 'Ask an administrator with the role admin.',
  });
}
