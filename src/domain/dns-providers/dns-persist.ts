/** dns-persist-01 (draft): an administrator creates a permanent record once; the vault shows and checks it. */
import type { AcmeAuthorization, AcmeChallenge } from '../../acme/acme-types.ts';
import { dnsPersistValue } from '../../acme/challenge-answers.ts';
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { followCnames } from '../../dns/resolver/zones.ts';
import type { WorldContext } from '../contexts.ts';
import type { DnsContext } from '../issuance-contexts.ts';
import { zoneServers } from './dns-records.ts';

/**
 * Throws OperatorError with the record to create, unless there is a record that names the account and one of the CA's
 * issuer domain names and has not expired. A wildcard record is valid for the domain itself too. Never writes or
 * removes records.
 */
export async function checkPersistentRecord(
  vault: WorldContext & DnsContext,
  { identifier, wildcard }: AcmeAuthorization,
  { accountUri, issuerDomainNames }: AcmeChallenge,
  signal: AbortSignal,
): Promise<void> {
  const [issuer] = issuerDomainNames;
  if (accountUri === undefined || issuer === undefined) {
    throw new OperatorError('the CA offers dns-persist-01 without the values for its record');
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
  if (ours.some((record) => expiryOf(record) > now)) return;
  const [ended] = ours;
  if (ended === undefined) {
    throw new OperatorError(`missing record: ${name} TXT "${value}"`, {
      hint: 'Create it once; later renewals use the same record.',
    });
  }
  const until = ended.parameters.get('persistuntil') ?? '';
  throw new OperatorError(`the record ${name} TXT has expired: persistUntil=${until}`, {
    hint: `Replace it with "${value}", with a later persistUntil or none.`,
  });
}

/** Queries the authoritative servers, because a cache would keep a negative answer for long. */
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
      // Try the next server, then the resolver.
    }
  }
  return servers.resolver.txt(target);
}

/** An issuer with parameters, in the syntax of CAA (RFC 8659 §4.2), with names in lower case. */
type PersistentRecord = { readonly issuer: string; readonly parameters: ReadonlyMap<string, string> };

function persistentRecord(text: string): PersistentRecord {
  const [issuer = '', ...rest] = text.split(';').map((part) => part.trim());
  const parameters = rest.map((part): [string, string] => {
    const at = part.indexOf('=');
    return [part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim()];
  });
  return { issuer: issuer.toLowerCase().replace(/\.$/, ''), parameters: new Map(parameters) };
}

/** The expiry in UTC milliseconds. persistUntil is in seconds since 1970; an invalid value counts as expired. */
function expiryOf({ parameters }: PersistentRecord): number {
  const until = parameters.get('persistuntil');
  if (until === undefined) return Number.POSITIVE_INFINITY;
  return /^\d{1,15}$/.test(until) ? Number(until) * second : 0;
}
