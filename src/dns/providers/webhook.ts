/** Provider `webhook`: your own HTTP server, called in the format of lego's httpreq in its default mode. */
import { z } from 'zod';
import { Secret } from '../../base/secret.ts';
import type { DnsContext, DnsProviderType } from '../dns-provider.ts';
import { apiUrl, credential } from './api-settings.ts';
import { type JsonApi, jsonApi } from './json-api.ts';

const config = z
  .strictObject({
    url: apiUrl,
    username: z
      .string()
      .min(1)
      .regex(/^[^:]*$/, 'must not contain a colon')
      .optional(),
    password: credential('the password').optional(),
  })
  .refine(({ username, password }) => (username === undefined) === (password === undefined), {
    path: ['password'],
    message: 'must be set together with username',
  });

/** `username`, `password`: for HTTP Basic authentication (RFC 7617). */
export type WebhookConfig = z.output<typeof config>;

/** POST to `/present` and `/cleanup` under the URL; any 2xx status is success, regardless of the body. */
export const webhook: DnsProviderType<WebhookConfig> = {
  type: 'webhook',
  title: "your own HTTP server, called in the format of lego's httpreq",
  config,
  create: (settings, context) => {
    const api = apiOf(settings, context);
    const send = async (path: string, purpose: string, name: string, value: string, signal: AbortSignal) => {
      await api.send({ method: 'POST', path, purpose, json: { fqdn: `${name}.`, value } }, signal);
    };
    return {
      present: ({ name, value }, signal) =>
        send('/present', `set the TXT record ${name}`, name, value, signal),
      remove: ({ name, value }, signal) =>
        send('/cleanup', `remove the TXT record ${name}`, name, value, signal),
    };
  },
};

function apiOf({ url, username, password }: WebhookConfig, context: DnsContext): JsonApi {
  const basic = new Secret(Buffer.from(`${username ?? ''}:${password ?? ''}`).toString('base64'));
  return jsonApi({
    context,
    title: `the webhook at ${new URL(url).host}`,
    baseUrl: url,
    permission: username === undefined ? 'Set username and password.' : 'Check username and password.',
    secrets: password === undefined ? [] : [new Secret(password), basic],
    decode: jsonOrText,
    ...(username !== undefined && { authorize: () => ({ Authorization: `Basic ${basic.expose()}` }) }),
  });
}

/** The format does not specify response bodies: many servers return `OK`. */
function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Plain text.
    return text;
  }
}
