/**
 * Channel `webhook`: a POST request with JSON or a template, signed as in Standard Webhooks. The response body is never
 * shown.
 */
import { z } from 'zod';
import { Secret } from '../base/secret.ts';
import { isSecureUrl } from '../base/secure-url.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import { signatureHeaders, signingKey } from '../net/webhook-signature.ts';
import type { ChannelContext, ChannelType, Message } from './channel.ts';
import { chatMessage } from './chat-message.ts';
import { deliverByHttp, httpPatience } from './http-delivery.ts';
import { largestTemplate, placeholders, renderedTemplate, templateProblem } from './webhook-template.ts';

const defaultType = 'application/json';

const config = z
  .strictObject({
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
    template: z
      .string()
      .min(1, { error: 'must not be empty' })
      .max(largestTemplate, { error: `must have at most ${largestTemplate} characters` })
      .meta({ description: `Replaces the body; placeholders: {{${placeholders.join('}}, {{')}}}` })
      .optional(),
    content_type: z
      .string()
      .regex(/^[a-z]{1,20}\/[a-z0-9.+-]{1,80}(?:; ?charset=utf-8)?$/, {
        error: 'must be a media type in lower case, such as text/plain',
      })
      .optional(),
  })
  .superRefine(({ template, content_type }, { addIssue }) => {
    if (content_type !== undefined && template === undefined) {
      addIssue({ code: 'custom', path: ['content_type'], message: 'must be set together with template' });
    }
    const problem =
      template === undefined ? undefined : templateProblem(template, content_type ?? defaultType);
    if (problem !== undefined) addIssue({ code: 'custom', path: ['template'], message: problem });
  });

/**
 * `url` may contain a token, so it is protected like `secret`; `ca` replaces the public CAs; `template` is the body
 * instead of the JSON.
 */
export type WebhookChannelConfig = z.output<typeof config>;

export const webhookChannel: ChannelType<WebhookChannelConfig> = {
  type: 'webhook',
  title: 'a JSON POST request, signed as in Standard Webhooks',
  config,
  plain: 'secret',
  target: ({ url }) => new URL(url).origin,
  patience: () => httpPatience,
  maxPatience: httpPatience,
  create: (settings, context) => ({ send: (message, signal) => post(settings, context, message, signal) }),
};

async function post(
  { url, secret, ca, template, content_type = defaultType }: WebhookChannelConfig,
  context: ChannelContext,
  message: Message,
  signal: AbortSignal,
): Promise<undefined> {
  const key = new Secret(signingKey(secret) ?? Buffer.alloc(0));
  const body =
    template === undefined
      ? JSON.stringify(message)
      : renderedTemplate(template, content_type, chatMessage(message, context));
  const headers = {
    'Content-Type': content_type,
    ...signatureHeaders(key, { id: message.id, body }, context.world.now()),
  };
  return deliverByHttp({ url, headers, body, ca }, context, signal);
}
