/** Whether the CAs can be reached from here: their names resolve, their certificates are trusted, their clock is ours. */

import { AcmeError } from '../../acme/acme-error.ts';
import { readDirectory } from '../../acme/directory.ts';
import { minute, second } from '../../base/duration.ts';
import { type AcmeIssuerRow, findAcmeIssuer, listIssuers } from '../../db/tables/issuers.ts';
import { type Outbound, OutboundError, type OutboundResponse } from '../../net/outbound-http.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

type OutboundContext = { readonly outbound: Outbound };

/** How long a CA may take. */
const patience = 10 * second;

/** ACME works with any clock, but certificates from the future are refused everywhere. */
const largestSkew = 5 * minute;

/** One finding for each CA, and one for a clock that differs from theirs. */
export async function issuerFindings(vault: TimedContext & OutboundContext): Promise<Finding[]> {
  const issuers = await listIssuers(vault.db.reader);
  const findings = await Promise.all(
    issuers.map(async ({ id, name }) => {
      const row = await findAcmeIssuer(vault.db.reader, id);
      return row === undefined ? [] : caFindings(vault, name, row);
    }),
  );
  if (findings.flat().length > 0) return findings.flat();
  return [{ check: 'issuer', status: 'ok', message: 'no CA is asked but the private one' }];
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
    answer = await vault.outbound({ method: 'GET', url, ca: ca ?? undefined, timeoutMs: patience });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    return [finding('failed', `${name}: ${error.message}`, hints[error.reason])];
  }
  if (answer.status !== 200) {
    const hint = 'Try again later; if it stays so, see whether the directory of the CA has moved.';
    return [finding('failed', `${name}: ${new URL(url).host} answers with status ${answer.status}`, hint)];
  }
  try {
    readDirectory({ url, ...answer, retryAfterMs: undefined });
  } catch (error) {
    if (!(error instanceof AcmeError)) throw error;
    const hint = `See whether ${url} is the directory of an ACME CA, and no proxy answers in its place.`;
    return [finding('failed', `${name}: ${error.message}`, hint)];
  }
  return [
    finding('ok', `${name}: ${new URL(url).host} answers, and its certificate is trusted`),
    ...skewFindings(vault.world.now(), answer.headers.date, name),
  ];
}

/** The header has whole seconds, and was written a moment ago. */
function skewFindings(now: number, date: string | undefined, name: string): Finding[] {
  const theirs = date === undefined ? Number.NaN : Date.parse(date);
  const skew = now - theirs;
  if (Number.isNaN(skew) || Math.abs(skew) < largestSkew) return [];
  const minutes = Math.floor(Math.abs(skew) / minute);
  return [
    {
      check: 'clock',
      status: 'failed',
      message: `the clock here is ${minutes} minutes ${skew > 0 ? 'ahead of' : 'behind'} that of ${name}'s CA`,
      hint: 'Set it, and keep it right with NTP (timedatectl set-ntp true).',
    },
  ];
}

const hints: Readonly<Record<OutboundError['reason'], string>> = {
  unreachable:
    'See whether the name resolves here, a firewall is in the way, or a proxy is needed (HTTPS_PROXY).',
  untrusted:
    'If the CA has a private root, give it with "vault issuer update --ca-file"; else something on the way breaks TLS open.',
  timeout: 'See whether a firewall drops the connection, or a proxy is needed (HTTPS_PROXY).',
  'cut-off': 'See whether a proxy or a firewall on the way cuts connections.',
  'too-large': 'See whether the URL is the directory of an ACME CA.',
  aborted: 'Try again.',
  refused: 'Allow the address where this CA is yours; else give the CA by its public name.',
};
