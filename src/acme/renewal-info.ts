/** ACME Renewal Information (RFC 9773): when the CA suggests renewing a certificate. */
import { z } from 'zod';
import { hour, minute } from '../base/duration.ts';
import { parseTimestamp } from '../base/timestamp.ts';
import { serialAndAuthorityKeyId } from '../crypto/x509/certificate-id.ts';
import { absoluteUrl, jsonIn, unexpected } from './acme-answer.ts';
import type { AcmeClient } from './acme-client.ts';
import type { RenewalInfo } from './acme-types.ts';

const soonest = minute;
const latest = 24 * hour;
/** RFC 9773 §4.3.3: default if the CA sends no Retry-After. */
const usual = 6 * hour;

const schema = z.object({
  suggestedWindow: z.object({ start: z.string(), end: z.string() }),
  explanationURL: absoluteUrl.optional().catch(undefined),
});

/**
 * The id of a certificate (DER) in renewal information and in `replaces` (§4.1), or undefined if it has no authority
 * key identifier, which is rare.
 */
export function renewalInfoId(leaf: Buffer): string | undefined {
  const id = serialAndAuthorityKeyId(leaf);
  if (id === undefined) return undefined;
  return `${id.authorityKeyId.toString('base64url')}.${id.serial.toString('base64url')}`;
}

/**
 * The renewal information for the certificate with this id, or undefined if the CA does not support it. Throws
 * AcmeError; `protocol` for an unreadable window or one whose end is not after its start (§4.2).
 */
export async function fetchRenewalInfo(
  client: AcmeClient,
  id: string,
  signal: AbortSignal,
): Promise<RenewalInfo | undefined> {
  const { renewalInfo } = await client.directory(signal);
  if (renewalInfo === undefined) return undefined;
  const answer = await client.get(`${renewalInfo.replace(/\/$/, '')}/${id}`, signal);
  const { suggestedWindow, explanationURL } = jsonIn(answer, 'renewal information', schema);
  const windowStart = parseTimestamp(suggestedWindow.start);
  const windowEnd = parseTimestamp(suggestedWindow.end);
  if (windowStart === undefined || windowEnd === undefined || windowEnd <= windowStart) {
    const { start, end } = suggestedWindow;
    throw unexpected(answer, 'renewal information', `an invalid window from ${start} to ${end}`);
  }
  const retryAfterMs = Math.min(Math.max(answer.retryAfterMs ?? usual, soonest), latest);
  return { windowStart, windowEnd, explanationUrl: explanationURL, retryAfterMs };
}
