/** No one creates an API key with more rights than their own. */
import { hasAnyLabel } from '../../base/object-label.ts';
import { Problem } from '../../base/problem.ts';
import { includesRole } from '../../base/role.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { isInside, parseIpNetwork } from '../../net/ip-network.ts';
import type { CreateApiKeyInput } from '../inputs.ts';
import { isWithinReach, requireLabelsOfReach, requireOwnLabel } from '../labels/reach.ts';
import type { ApiKeyIdentity, Identity } from './identity.ts';
import { canIssue } from './profile-confinement.ts';

/** The labels of the certificate of a name. */
type Labels = { readonly of: (name: string) => readonly string[] | Promise<readonly string[]> };

/** Throws `forbidden` if a key with these settings could do something that the identity may not. */
export async function requireGrantable(
  labels: Labels,
  identity: Identity,
  input: CreateApiKeyInput,
): Promise<void> {
  requireKeyless(identity, input);
  const { role, scopes } = identity;
  // Who may create administrators may do everything.
  if (role === 'admin') return;
  const missing = input.scopes.find((scope) => !scopes.has(scope));
  if (missing !== undefined) throw refusal(`the scope ${missing}`);
  if (input.role !== null && (role === null || !includesRole(role, input.role))) {
    throw refusal(`the role ${input.role}`);
  }
  requireWithinProfiles(identity, input);
  if (identity.kind === 'api-key') await requireWithinKey(labels, identity, input);
  await requireWithinReach(labels, identity, input);
}

/** Throws `forbidden` if a key with these settings may have certificates issued with other profiles. */
function requireWithinProfiles({ profiles }: Identity, input: CreateApiKeyInput): void {
  if (profiles === 'any' || !canIssue(input)) return;
  const other = input.profiles.length === 0 ? '*' : input.profiles.find((one) => !profiles.has(one));
  if (other !== undefined) throw refusal(`the profile ${other}`);
}

/**
 * Throws `forbidden` if a key with these settings reaches further than the identity: a key with a role needs a reach of
 * its own, others get certificates within the reach. The key itself has a label of it, so that its creator sees it.
 */
async function requireWithinReach(
  labels: Labels,
  identity: Identity,
  { certificates, certificate_labels, reach, role, labels: own }: CreateApiKeyInput,
): Promise<void> {
  if (identity.reach === 'any') return;
  requireOwnLabel(identity, own);
  if (role !== null) {
    requireLabelsOfReach(identity, reach, 'the reach');
    return;
  }
  if (certificates === 'any') throw refusal('the certificate *');
  for (const name of certificates) {
    if (!isWithinReach(identity, await labels.of(name))) throw refusal(`the certificate ${name}`);
  }
  if (certificate_labels.length > 0) requireLabelsOfReach(identity, certificate_labels, 'the label');
}

/** What a key may do with private keys: itself, or by a key that it creates. */
export type KeyRights = Pick<CreateApiKeyInput, 'scopes' | 'role'>;

/** Throws `forbidden` for a session that gets no private keys, if it could get some by a key with these rights. */
export function requireKeyless(identity: Identity, { scopes, role }: KeyRights): void {
  if (identity.kind === 'api-key' || identity.role !== 'admin') return;
  if (identity.scopes.has('private_keys:read')) return;
  if (role !== 'admin' && !scopes.includes('private_keys:read')) return;
  throw new Problem('forbidden', {
    detail: 'Console sessions cannot grant access to private keys (setting hide-private-keys).',
    hint: 'Use "vault api-key" or "vault enrollment" on the vault\'s host, or an API key with the role admin.',
  });
}

/** Throws `forbidden` if a key with these settings is less confined than the one that creates it. */
async function requireWithinKey(
  labels: Labels,
  { certificates, certificateLabels, networks, clientCertificate, expiresAt }: ApiKeyIdentity,
  input: CreateApiKeyInput,
): Promise<void> {
  if (certificates !== 'any') {
    if (input.certificates === 'any') throw refusal('the certificate *');
    for (const name of input.certificates) {
      const isAllowed = certificates.has(name) || hasAnyLabel(await labels.of(name), certificateLabels);
      if (!isAllowed) throw refusal(`the certificate ${name}`);
    }
    const other = input.certificate_labels.find((label) => !certificateLabels.includes(label));
    if (other !== undefined) throw refusal(`certificates with the label ${other}`);
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
