/**
 * Whether http-01 challenges would arrive: each name that is proved so is asked on port 80 for a token that does not exist,
 * and a vault has to answer. The CA asks from elsewhere, so that this shows trouble, and never that there is none.
 */
import { isIPv6 } from 'node:net';
import { second } from '../../base/duration.ts';
import { pagesOfSummaries } from '../../db/tables/certificate-summaries.ts';
import { listIssuers } from '../../db/tables/issuers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import { placeOf } from '../issuance/dns-records.ts';
import type { DnsLookupContext } from '../issuance/issuance-contexts.ts';
import type { Finding } from './finding.ts';

const patience = 5 * second;

/** Enough to see a wrong firewall, and done within a minute also where every one of them times out. */
const mostNames = 10;

const token = 'vault-doctor-asks-whether-this-arrives';

/**
 * Asks through `outbound`, which must be one without a proxy: the CA does not come through ours. Names that a DNS
 * provider proves, wildcards and names of disabled certificates are not asked.
 */
export async function reachabilityFindings(
  vault: DnsLookupContext,
  outbound: Outbound,
  signal: AbortSignal,
): Promise<Finding[]> {
  const names = await namesByHttp(vault, signal);
  if (names.length === 0) return [{ check: 'http-01', status: 'ok', message: 'no name is proved over HTTP' }];
  const asked = names.slice(0, mostNames);
  const findings = await Promise.all(asked.map((name) => findingFor(name, outbound, signal)));
  const rest = names.length - asked.length;
  if (rest > 0) {
    const message = `${rest} more names are proved over HTTP; only the first ${mostNames} were asked`;
    findings.push({ check: 'http-01', status: 'skipped', message });
  }
  return findings;
}

async function namesByHttp(vault: DnsLookupContext, signal: AbortSignal): Promise<string[]> {
  const { reader } = vault.db;
  const types = new Map((await listIssuers(reader)).map(({ id, type }) => [id, type]));
  if (![...types.values()].includes('acme')) return [];
  const names = new Set<string>();
  for await (const rows of pagesOfSummaries(reader)) {
    for (const { issuer_id: issuer, disabled_at: disabled, challenge, domains } of rows) {
      const isAcme = issuer !== null && types.get(issuer) === 'acme';
      if (!isAcme || disabled !== null || (challenge !== null && challenge !== 'http-01')) continue;
      for (const name of JSON.parse(domains) as string[]) {
        if (names.size > mostNames * 2 || name.startsWith('*.')) continue;
        if (challenge === 'http-01' || !(await hasDnsProvider(vault, name, signal))) names.add(name);
      }
    }
  }
  return [...names];
}

/** A name server that does not answer now proves nothing: the name is asked over HTTP. */
async function hasDnsProvider(vault: DnsLookupContext, name: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await placeOf(vault, name, signal)) !== undefined;
  } catch (error) {
    if (error instanceof DnsProviderError) return false;
    throw error;
  }
}

async function findingFor(name: string, outbound: Outbound, signal: AbortSignal): Promise<Finding> {
  const host = isIPv6(name) ? `[${name}]` : name;
  const url = `http://${host}/.well-known/acme-challenge/${token}`;
  const trouble = (message: string, hint: string): Finding => ({
    check: 'http-01',
    status: 'warning',
    about: name,
    message: `${name}: ${message}`,
    hint,
  });
  let answer: OutboundResponse;
  try {
    answer = await outbound({ method: 'GET', url, timeoutMs: patience, maxBytes: 65_536, signal });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return trouble(
      error.message,
      'The CA will ask there, on port 80: see DNS, firewall and --acme-http-listen. If the CA can reach it though this machine cannot, all is well.',
    );
  }
  const { status, headers } = answer;
  if (isFromVault(answer)) {
    return { check: 'http-01', status: 'ok', about: name, message: `${name}: a vault answers on port 80` };
  }
  const hint = `Let ${name} pass /.well-known/acme-challenge/ on to the vault, or prove it with a DNS provider.`;
  if (status >= 300 && status < 400 && headers.location !== undefined) {
    return trouble('port 80 leads elsewhere, and what answers there was not looked at', hint);
  }
  return trouble(`something else answers on port 80 (status ${status})`, hint);
}

/** The refusal of a token that does not exist, as only a vault words it. */
function isFromVault({ status, headers, body }: OutboundResponse): boolean {
  if (status !== 404 || headers['content-type'] !== 'application/problem+json') return false;
  try {
    return (JSON.parse(body.toString()) as { code?: unknown }).code === 'not_found';
  } catch {
    // Something else's idea of such an answer.
    return false;
  }
}
