/** The common base of chat and paging channels: a JSON document, posted to the API of a service. */
import { z } from 'zod';
import { isSecureUrl } from '../base/secure-url.ts';
import { withoutTrailing } from '../base/trailing.ts';
import type { ChannelType } from './channel.ts';
import { type ChatMessage, chatMessage } from './chat-message.ts';
import { deliverByHttp, httpPatience } from './http-delivery.ts';

/** Path, headers and body of a request. */
export type ChatRequest = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
};

/** What differs between services. */
export type ChatService<Config> = Pick<
  ChannelType<Config>,
  'type' | 'title' | 'config' | 'plain' | 'gathers' | 'keepsAlarms'
> & {
  readonly request: (config: Config, message: ChatMessage) => ChatRequest;
};

/** A channel type that posts the messages of the service. */
export function chatChannel<Config extends { readonly url: string; readonly ca?: string | undefined }>({
  request,
  ...type
}: ChatService<Config>): ChannelType<Config> {
  return {
    ...type,
    target: ({ url }) => new URL(url).origin,
    patience: () => httpPatience,
    maxPatience: httpPatience,
    create: (config, context) => ({
      send: async (message, signal) => {
        const { url, headers, body } = request(config, chatMessage(message, context));
        const delivery = {
          url,
          headers: { 'Content-Type': 'application/json', ...headers },
          body: JSON.stringify(body),
          ca: config.ca,
          waitOf,
        };
        return deliverByHttp(delivery, context, signal);
      },
    }),
  };
}

/** Discord names the seconds at the top, Telegram in `parameters`. */
function waitOf(body: unknown): unknown {
  const { retry_after: wait, parameters } = body as {
    readonly retry_after?: number;
    readonly parameters?: { readonly retry_after?: number };
  };
  return wait ?? parameters?.retry_after;
}

/** The setting for a URL that is itself the credential. */
export const webhookUrl = z
  .string({ error: 'is missing; it must be the URL that the service shows for its webhook' })
  .max(2000)
  .refine(isSecureUrl, {
    error: 'must be an https:// URL without user and fragment (http:// only for localhost)',
  });

/** The setting for the address of a service, without trailing slashes. */
export function serverUrl(fallback?: string) {
  const url = z
    .string({ error: 'is missing; it must be the URL of the server' })
    .max(2000)
    .refine((text) => isSecureUrl(text) && URL.parse(text)?.search === '', {
      error: 'must be an https:// URL without user, query and fragment (http:// only for localhost)',
    })
    .transform((text) => withoutTrailing(text, '/'));
  return fallback === undefined ? url : url.default(fallback);
}

/** A credential for a header or a path: visible ASCII characters. */
export function token(error: string, pattern = /^[\x21-\x7e]{1,512}$/) {
  return z.string({ error: `is missing; it ${error}` }).regex(pattern, { error });
}
