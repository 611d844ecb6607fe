/** What keeps a certificate from being deleted. */
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import { keysBoundTo } from '../../db/tables/access/client-certificates.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { targetsWith } from '../../db/tables/deploy-targets.ts';
import { neededForHttps, type ServingServer, servingServers } from '../instance/served-settings.ts';

type NamedKey = { readonly id: number; readonly name: string };

/**
 * Throws `certificate_in_use` if the running server serves HTTPS with the certificate, or if an unrevoked API key has
 * it in its allowlist (`listing`) or as its client certificate, or if the vault installs it on a deploy target.
 */
export async function refuseInUse(
  reader: Reader,
  { id, name }: Pick<CertificateRow, 'id' | 'name'>,
  listing: readonly NamedKey[],
): Promise<void> {
  const isServedWith = ({ settings }: ServingServer) => settings.tls_certificate === name;
  if ((await servingServers(reader)).some(isServedWith)) throw neededForHttps(name);
  if (listing.length > 0) {
    throw new Problem('certificate_in_use', {
      detail: `API keys have "${name}" in their allowlists: ${someKeys(listing)}.`,
      hint: 'Revoke these keys first, or remove the certificate from their allowlists with --force.',
    });
  }
  const targets = await targetsWith(reader, id, maxShown + 1);
  if (targets.length > 0) {
    throw new Problem('certificate_in_use', {
      detail: `The vault installs "${name}" on deploy targets: ${some(targets)}.`,
      hint: 'Remove it from these targets first. With --force, what is installed there stays and is not renewed.',
    });
  }
  const bound = await keysBoundTo(reader, id);
  if (bound.length === 0) return;
  throw new Problem('certificate_in_use', {
    detail: `API keys work only with "${name}" as client certificate: ${someKeys(bound)}.`,
    hint: 'Revoke these keys first, or bind them to another certificate. With --force, they stop working.',
  });
}

/** The first keys of a list. */
function someKeys(keys: readonly NamedKey[]): string {
  return some(keys.map(({ id, name }) => `${id} (${name})`));
}

const maxShown = 5;

function some(words: readonly string[]): string {
  return `${words.slice(0, maxShown).join(', ')}${words.length > maxShown ? ' …' : ''}`;
}
