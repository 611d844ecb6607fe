/** Webhook signatures as specified by Standard Webhooks, so that recipients can verify them with existing libraries. */
import { createHmac } from 'node:crypto';
import type { Secret } from '../base/secret.ts';
import { withoutTrailing } from '../base/trailing.ts';

/** `whsec_` and 24 to 64 bytes in Base64, as printed by `openssl rand -base64 32`. */
const pattern = /^whsec_([A-Za-z0-9+/]{32,88}={0,2})$/;

/** The bytes of a signing secret, or undefined if invalid. */
export function signingKey(text: string): Buffer | undefined {
  const base64 = pattern.exec(text)?.[1];
  if (base64 === undefined) return undefined;
  const key = Buffer.from(base64, 'base64');
  const isWhole = withoutTrailing(key.toString('base64'), '=') === withoutTrailing(base64, '=');
  return isWhole && key.length >= 24 && key.length <= 64 ? key : undefined;
}

/** The signing secret with these bytes, in its text form. */
export function signingSecret(bytes: Buffer): string {
  return `whsec_${bytes.toString('base64')}`;
}

/** The headers of a message sent at `now` (UTC milliseconds) with this body. */
export function signatureHeaders(
  key: Secret,
  { id, body }: { readonly id: string; readonly body: string },
  now: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(now / 1000));
  const mac = createHmac('sha256', key.expose()).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${mac}` };
}
