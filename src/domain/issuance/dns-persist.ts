/** dns-persist-01 (draft): a record that a person makes once and that stays; the vault shows and checks it. */
import type { AcmeAuthorization, AcmeChallenge } from '../../acme/acme-types.ts';
import { dnsPersistValue } from '../../acme/challenge-answers.ts';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { followCnames } from '../../dns/resolver/zones.ts';
import type { WorldContext } from '../contexts.ts';
import { zoneServers } from './dns-records.ts';
import type { DnsContext } from './issuance-contexts.ts';

/**
 * Throws OperatorError with the record to create, unless one is there that names the CA, by any of its issuer domain
 * names, and the account, and that has not ended. One for a wildcard does for the domain itself too. Nothing is ever
 * written or removed.
 */
export async function checkPersistentRecord(
  vault: WorldContext & DnsContext,
  { identifier, wildcard }: AcmeAuthorization,
  { accountUri, issuerDomainNames }: AcmeChallenge,
  signal: AbortSignal,
): Promise<void> {
  const [issuer] = issuerDomainNames;
  if (accountUri === undefined || issuer === undefined) {
    throw new OperatorError('the CA offers dns-persist-01 without saying what the record must name');
  }
  signal.throwIfAborted();
  const name = `_validation-persist.${identifier.value}`;
  const value = dnsPersistValue(issuer, accountUri, wildcard);
  const seen = (await valuesAt(vault, name, signal)).map(persistentRecord);
  const ours = seen.filter(
    (record) =>
      issuerDomainNames.some((known) => known.toLowerCase() === record.issuer) &&
      record.parameters.get('accounturi') === accountUri &&
      (!wildcard || record.parameters.get('policy')?.toLowerCase() === 'wildcard'),
  );
  const now = vault.world.now();
  if (ours.some((record) => endOf(record) > now)) return;
  const [ended] = ours;
  if (ended === undefined) {
    throw new OperatorError(`the record ${name} TXT "${value}" is not there`, {
      hint: 'Create it once; it stays, and later renewals need nothing more.',
    });
  }
  const until = ended.parameters.get('persistuntil') ?? '';
  throw new OperatorError(`the record ${name} TXT has expired: persistUntil=${until}`, {
    hint: `Create "${value}" in its place, with a later persistUntil or none.`,
  });
}

/** Queries the name servers; a cache would keep a negative answer for long. */
async function valuesAt(vault: DnsContext, name: string, signal: AbortSignal): Promise<readonly string[]> {
  const servers = zoneServers(vault);
  const target = await followCnames(servers, name, signal);
  const { places } = await servers.above(target);
  for (const { at } of places) {
    if (at === undefined) continue;
    try {
      return await servers.resolver.txt(target, at);
    } catch (error) {
      if (!(error instanceof DnsProviderError)) throw error;
      // Another server may answer; if none does, the resolver is queried.
    }
  }
  return servers.resolver.txt(target);
}

/** A record as CAA writes issuers and their parameters (RFC 8659 §4.2): the names in lower case. */
type PersistentRecord = { readonly issuer: string; readonly parameters: ReadonlyMap<string, string> };

function persistentRecord(text: string): PersistentRecord {
  const [issuer = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = rest.map((part): [string, string] => {
    const at = part.indexOf('=');
    return [part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim()];
  });
  return { issuer: issuer.toLowerCase().replace(/\.$/, ''), parameters: new Map(parameters) };
}

/** UTC milliseconds; persistUntil is in seconds since 1970. What is no number is no valid record. */
function endOf({ parameters }: PersistentRecord): number {
  const until = parameters.get('persistuntil');
  if (until === undefined) return Number.POSITIVE_INFINITY;
  return /^\d{1,15}$/.test(until) ? Number(until) * second : 0;
}
