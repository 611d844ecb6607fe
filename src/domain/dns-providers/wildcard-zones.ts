/** Wildcards at an ACME CA need dns-01: refuses at once those whose records no DNS provider could create. */
import { withDeadline } from '../../base/deadline.ts';
import { second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { challengeName, followCnames, longestZone } from '../../dns/resolver/zones.ts';
import type { WorldContext } from '../contexts.ts';
import type { DnsLookupContext } from '../issuance-contexts.ts';
import { sentence } from '../issuers/issuers.ts';
import { zoneServers } from './dns-records.ts';
import { registeredDomains } from './registered-domain.ts';

/** What looks for CNAMEs of challenge records. */
export type ZoneContext = DnsLookupContext & WorldContext;

/** For all CNAME lookups together: a person waits for them. */
const patience = 5 * second;

/**
 * Throws `invalid_request` if the issuer is an ACME CA and no DNS provider has a zone for the challenge record of a
 * wildcard, CNAMEs included. A challenge type that was chosen is not questioned, because some CAs issue to known
 * accounts without a challenge, and a failed lookup refuses nothing.
 */
export async function refuseWildcardsWithoutZone(
  vault: ZoneContext,
  issuer: Pick<IssuerRow, 'type'>,
  {
    domains,
    challenge,
  }: { readonly domains: readonly string[]; readonly challenge?: string | null | undefined },
): Promise<void> {
  const wildcards = domains.filter((domain) => domain.startsWith('*.'));
  if (issuer.type !== 'acme' || challenge != null || wildcards.length === 0) return;
  const providers = (await listDnsProviders(vault.db.reader)).map(({ zones }) => ({
    zones: parseJson(zones),
  }));
  const outside = wildcards.filter((name) => longestZone(challengeName(name), providers) === undefined);
  const lost = providers.length === 0 ? outside[0] : await firstWithoutAlias(vault, outside, providers);
  if (lost === undefined) return;
  const message = `no DNS provider has a zone for ${lost}; add one, or choose challenge dns-01 if the CA issues to your account without a challenge`;
  const [zone = lost.slice('*.'.length)] = await registeredDomains([lost]);
  throw new Problem('invalid_request', {
    detail: sentence(message),
    hint: `Fix: vault dns-provider add --name NAME --type TYPE --zone ${zone} --secret-file FILE`,
    errors: [{ path: 'domains', message }],
  });
}

/** The first of these names whose challenge record is no CNAME into a zone of a provider. */
async function firstWithoutAlias(
  vault: ZoneContext,
  names: readonly string[],
  providers: readonly { readonly zones: readonly string[] }[],
): Promise<string | undefined> {
  if (names.length === 0) return undefined;
  const servers = zoneServers(vault);
  return withDeadline(vault.world, patience, new AbortController().signal, async ({ signal }) => {
    for (const name of names) {
      try {
        const record = await followCnames(servers, challengeName(name), signal);
        if (longestZone(record, providers) === undefined) return name;
      } catch (error) {
        // The renewal repeats the lookup, and says what failed.
        if (!(error instanceof DnsProviderError)) throw error;
      }
    }
    return undefined;
  });
}
