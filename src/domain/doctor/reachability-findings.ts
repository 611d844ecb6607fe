/**
 * Whether http-01 validation can reach the vault: requests an unknown token from port 80 of each name that uses http-01
 * and expects the answer of a vault. The CA connects from another network, so this finds problems but cannot rule them
 * out.
 */
import { isIPv6 } from 'node:net';
import { second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { pagesOfSummaries } from '../../db/tables/certificates/certificate-summaries.ts';
import { listIssuers } from '../../db/tables/issuance/issuers.ts';
import { DnsProviderError } from '../../dns/dns-provider.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import { placeOf } from '../dns-providers/dns-records.ts';
import type { DnsLookupContext } from '../issuance-contexts.ts';
import type { Finding } from './finding.ts';

const timeout = 5 * second;

/** Enough to notice a wrong firewall rule, and quick enough even if every request times out. */
const maxNames = 10;

const token = 'vault-doctor-asks-whether-this-arrives';

/**
 * Sends the requests through `outbound`, which must not use a proxy because the CA does not use ours either. Skips
 * wildcards, names that a DNS provider validates, and disabled certificates.
 */
export async function reachabilityFindings(
  vault: DnsLookupContext,
  outbound: Outbound,
  signal: AbortSignal,
): Promise<Finding[]> {
  const names = await namesWithHttp01(vault, signal);
  if (names.length === 0) return [{ check: 'http-01', status: 'ok', message: 'no certificate uses http-01' }];
  const checked = names.slice(0, maxNames);
  const findings = await Promise.all(checked.map((name) => findingFor(name, outbound, signal)));
  const rest = names.length - checked.length;
  if (rest > 0) {
    const message = `${rest} more names use http-01; checked only the first ${maxNames}`;
    findings.push({ check: 'http-01', status: 'skipped', message });
  }
  return findings;
}

async function namesWithHttp01(vault: DnsLookupContext, signal: AbortSignal): Promise<string[]> {
  const { reader } = vault.db;
  const types = new Map((await listIssuers(reader)).map(({ id, type }) => [id, type]));
  if (![...types.values()].includes('acme')) return [];
  const names = new Set<string>();
  for await (const rows of pagesOfSummaries(reader)) {
    for (const { issuer_id: issuer, disabled_at: disabled, challenge, domains } of rows) {
      const isAcme = issuer !== null && types.get(issuer) === 'acme';
      if (!isAcme || disabled !== null || (challenge !== null && challenge !== 'http-01')) continue;
      for (const name of parseJson(domains)) {
        if (names.size > maxNames * 2 || name.startsWith('*.')) continue;
        if (challenge === 'http-01' || !(await hasDnsProvider(vault, name, signal))) names.add(name);
      }
    }
  }
  return [...names];
}

/** False if DNS does not answer: then the name is checked over HTTP. */
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
  const problem = (message: string, hint: string): Finding => ({
    check: 'http-01',
    status: 'warning',
    about: name,
    message: `${name}: ${message}`,
    hint,
  });
  let answer: OutboundResponse;
  try {
    answer = await outbound({ method: 'GET', url, timeoutMs: timeout, maxBytes: 65_536, signal });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return problem(
      error.message,
      'The CA connects to port 80 of this name: check DNS, the firewall and --acme-http-listen. Ignore this if the CA reaches the name and only this machine cannot.',
    );
  }
  const { status, headers } = answer;
  if (isFromVault(answer)) {
    return { check: 'http-01', status: 'ok', about: name, message: `${name}: port 80 leads to a vault` };
  }
  const hint = `Forward /.well-known/acme-challenge/ of ${name} to the vault, or use a DNS provider (dns-01).`;
  if (status >= 300 && status < 400 && headers.location !== undefined) {
    return problem('port 80 redirects elsewhere; redirects are not followed', hint);
  }
  return problem(`port 80 does not lead to a vault (status ${status})`, hint);
}

/** Whether this is the vault's own answer to an unknown token. */
function isFromVault({ status, headers, body }: OutboundResponse): boolean {
  if (status !== 404 || headers['content-type'] !== 'application/problem+json') return false;
  try {
    return (JSON.parse(body.toString()) as { code?: unknown }).code === 'not_found';
  } catch {
    // Another server that sends invalid JSON.
    return false;
  }
}
