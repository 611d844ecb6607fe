/** Channel `webhook`: a POST of JSON, signed as Standard Webhooks has it. The answer's body is never shown to anybody. */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { parseRetryAfter } from '../base/retry-after.ts';
import { Secret } from '../base/secret.ts';
import { isSecureUrl } from '../base/secure-url.ts';
import { OutboundError, type ResponseHead } from '../net/outbound-http.ts';
import { type ChannelContext, ChannelError, type ChannelType, type Message } from './channel.ts';
import { trustedCa } from './trust-settings.ts';
import { signatureHeaders, signingKey } from './webhook-signature.ts';

const config = z.strictObject({
  url: z
    .string({ error: 'is missing; it must be the URL that messages are posted to' })
    .max(2000)
    .refine(isSecureUrl, {
      error: 'must be an https:// URL without user and fragment (http:// only for localhost)',
    }),
  secret: z
    .string({ error: 'is missing; it must be the key that signs the messages' })
    .refine((text) => signingKey(text) !== undefined, {
      error: 'must be whsec_ followed by 24 to 64 bytes in Base64',
    }),
  ca: trustedCa,
});

/** `url` may hold a token, so it is kept as secretly as `secret`; `ca` is trusted in place of the public CAs. */
export type WebhookChannelConfig = z.output<typeof config>;

const patience = 30 * second;
/** Nobody reads what is answered. */
const largestAnswer = 64 * 1024;

export const webhookChannel: ChannelType<WebhookChannelConfig> = {
  type: 'webhook',
  title: 'a JSON POST request, signed as in Standard Webhooks',
  config,
  plain: 'secret',
  target: ({ url }) => new URL(url).origin,
  patience: () => patience,
  longestPatience: patience,
  create: (settings, context) => ({ send: (message, signal) => post(settings, context, message, signal) }),
};

async function post(
  { url, secret, ca }: WebhookChannelConfig,
  { world, outbound }: ChannelContext,
  message: Message,
  signal: AbortSignal,
): Promise<undefined> {
  const key = new Secret(signingKey(secret) ?? Buffer.alloc(0));
  const body = JSON.stringify(message);
  const headers = {
    'Content-Type': 'application/json',
    ...signatureHeaders(key, { id: message.id, body }, world.now()),
  };
  const limits = { timeoutMs: patience, maxBytes: largestAnswer };
  const { host } = new URL(url);
  let answer: ResponseHead;
  try {
    answer = await outbound({ method: 'POST', url, headers, body, ca, signal, ...limits });
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error;
    // Who says more than anybody reads has said yes or no before.
    if (error.head === undefined) throw new ChannelError(error.message, { cause: error });
    answer = error.head;
  }
  judge(host, answer, world.now());
  return undefined;
}

/** Any 2xx is a yes (RFC 9110 §15.3). */
function judge(host: string, { status, headers }: ResponseHead, now: number): void {
  if (status >= 200 && status < 300) return;
  if (status === 410)
    throw new ChannelError(`${host} responded with 410 Gone: the endpoint no longer accepts messages`, {
      gone: true,
    });
  const more = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  throw new ChannelError(`${host} responded with ${status}${more}`, {
    retryAfterMs: parseRetryAfter(headers['retry-after'], now),
  });
}
