/** Channel `webhook`: a JSON POST request, signed as in Standard Webhooks. The response body is never shown. */
import { z } from 'zod';
import { Secret } from '../base/secret.ts';
import { isSecureUrl } from '../base/secure-url.ts';
import type { ChannelContext, ChannelType, Message } from './channel.ts';
import { deliverByHttp, httpPatience } from './http-delivery.ts';
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

/** `url` may contain a token, so it is protected like `secret`; `ca` replaces the public CAs. */
export type WebhookChannelConfig = z.output<typeof config>;

export const webhookChannel: ChannelType<WebhookChannelConfig> = {
  type: 'webhook',
  title: 'a JSON POST request, signed as in Standard Webhooks',
  config,
  plain: 'secret',
  target: ({ url }) => new URL(url).origin,
  patience: () => httpPatience,
  longestPatience: httpPatience,
  create: (settings, context) => ({ send: (message, signal) => post(settings, context, message, signal) }),
};

async function post(
  { url, secret, ca }: WebhookChannelConfig,
  context: ChannelContext,
  message: Message,
  signal: AbortSignal,
): Promise<undefined> {
  const key = new Secret(signingKey(secret) ?? Buffer.alloc(0));
  const body = JSON.stringify(message);
  const headers = {
    'Content-Type': 'application/json',
    ...signatureHeaders(key, { id: message.id, body }, context.world.now()),
  };
  return deliverByHttp({ url, headers, body, ca }, context, signal);
}
