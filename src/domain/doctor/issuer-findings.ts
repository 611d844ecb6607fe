/** Whether the vault reaches each ACME CA: its name resolves, its certificate is trusted, and both clocks agree. */

import { AcmeError } from '../../acme/acme-error.ts';
import { readDirectory } from '../../acme/directory.ts';
import { minute, second } from '../../base/duration.ts';
import { type AcmeIssuerRow, findAcmeIssuer, listIssuers } from '../../db/tables/issuance/issuers.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

type OutboundContext = { readonly outbound: Outbound };

/** Time limit for the answer of a CA. */
const timeout = 10 * second;

/** ACME tolerates a wrong clock, but clients reject certificates that are not valid yet. */
const largestSkew = 5 * minute;

/** One finding per CA, and one for each CA whose clock differs from the vault's. */
export async function issuerFindings(vault: TimedContext & OutboundContext): Promise<Finding[]> {
  const issuers = await listIssuers(vault.db.reader);
  const findings = await Promise.all(
    issuers.map(async ({ id, name }) => {
      const row = await findAcmeIssuer(vault.db.reader, id);
      return row === undefined ? [] : caFindings(vault, name, row);
    }),
  );
  if (findings.flat().length > 0) return findings.flat();
  return [
    { check: 'issuer', status: 'ok', message: 'no ACME issuers; only the private CA issues certificates' },
  ];
}

async function caFindings(
  vault: WorldContext & OutboundContext,
  name: string,
  row: AcmeIssuerRow,
): Promise<Finding[]> {
  const finding = (status: Finding['status'], message: string, hint?: string): Finding => ({
    check: 'issuer',
    status,
    about: name,
    message,
    ...(hint !== undefined && { hint }),
  });
  const { directory_url: url, ca_pem: ca } = row;
  let answer: OutboundResponse;
  try {
    answer = await vault.outbound({ method: 'GET', url, ca: ca ?? undefined, timeoutMs: timeout });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return [finding('failed', `${name}: ${error.message}`, hints[error.reason])];
  }
  if (answer.status !== 200) {
    const hint = 'Try again later. If the error persists, check whether the CA has moved its directory.';
    return [finding('failed', `${name}: ${new URL(url).host} returned status ${answer.status}`, hint)];
  }
  try {
    readDirectory({ url, ...answer, retryAfterMs: undefined });
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    const hint = `Check that ${url} is the directory of an ACME CA and that no proxy answers in its place.`;
    return [finding('failed', `${name}: ${error.message}`, hint)];
  }
  return [
    finding('ok', `${name}: ${new URL(url).host} is reachable, and its certificate is trusted`),
    ...skewFindings(vault.world.now(), answer.headers.date, name),
  ];
}

/** The Date header is a moment old and has whole seconds, which the allowed skew covers. */
function skewFindings(now: number, date: string | undefined, name: string): Finding[] {
  const theirs = date === undefined ? Number.NaN : Date.parse(date);
  const skew = now - theirs;
  if (Number.isNaN(skew) || Math.abs(skew) < largestSkew) return [];
  const minutes = Math.floor(Math.abs(skew) / minute);
  return [
    {
      check: 'clock',
      status: 'failed',
      message: `the clock of this machine is ${minutes} minutes ${skew > 0 ? 'ahead of' : 'behind'} the clock of the CA of ${name}`,
      hint: 'Set the clock and turn on NTP.\nFix: timedatectl set-ntp true',
    },
  ];
}

const hints: Readonly<Record<OutboundError['reason'], string>> = {
  unreachable: 'Check DNS and the firewall, and whether this machine needs a proxy (HTTPS_PROXY).',
  untrusted:
    'If the CA has a private root, pass it with "vault issuer update --ca-file". Otherwise something on the network intercepts TLS.',
  timeout:
    'Check whether a firewall drops the connection, and whether this machine needs a proxy (HTTPS_PROXY).',
  'cut-off': 'Check whether a proxy or a firewall closes the connection.',
  'too-large': 'Check that the URL is the directory of an ACME CA.',
  aborted: 'Try again.',
  refused: 'If this CA is yours, allow its address. Otherwise use the public name of the CA.',
};
