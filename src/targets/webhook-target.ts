/** Target `webhook`: a POST request with certificate and private key as JSON, signed as in Standard Webhooks. */
import { z } from 'zod';
import { second } from '../base/duration.ts';
import { Secret } from '../base/secret.ts';
import { isSecureUrl } from '../base/secure-url.ts';
import { trustedCa } from '../net/trusted-ca.ts';
import { signatureHeaders, signingKey } from '../net/webhook-signature.ts';
import type { Installed, Material, TargetContext, TargetType } from './target.ts';
import { send } from './target-http.ts';

const config = z.strictObject({
  url: z
    .string({ error: 'is missing; it must be the URL that certificates are posted to' })
    .max(2000)
    .refine(isSecureUrl, {
      error: 'must be an https:// URL without user and fragment (http:// only for localhost)',
    }),
  secret: z
    .string({ error: 'is missing; it must be the key that signs the requests' })
    .refine((text) => signingKey(text) !== undefined, {
      error: 'must be whsec_ followed by 24 to 64 bytes in Base64',
    })
    .describe('signs the requests: whsec_ and 24 to 64 bytes in Base64'),
  ca: trustedCa,
});

/** `url` may contain a token, so it is protected like `secret`; `ca` replaces the public CAs. */
export type WebhookTargetConfig = z.output<typeof config>;

export const webhookTarget: TargetType<WebhookTargetConfig> = {
  type: 'webhook',
  title: 'a signed POST request with the certificate and the private key',
  config,
  host: ({ url }) => new URL(url).host,
  destination: ({ url }) => new URL(url).origin,
  patience: () => 30 * second,
  create: (settings, context) => ({
    install: (material, _remoteId, signal) => post(settings, context, material, signal),
  }),
};

async function post(
  { url, secret, ca }: WebhookTargetConfig,
  context: TargetContext,
  material: Material,
  signal: AbortSignal,
): Promise<Installed> {
  const { name, version, domains, fingerprint, notAfter, certificate, chain, fullchain } = material;
  const privateKey = material.privateKey.expose();
  const body = JSON.stringify({
    ...{ certificate: name, version, domains, fingerprint_sha256: fingerprint, not_after: notAfter },
    certificate_pem: certificate,
    chain_pem: chain,
    fullchain_pem: fullchain,
    private_key_pem: privateKey,
  });
  const key = new Secret(signingKey(secret) ?? Buffer.alloc(0));
  // The same for all attempts, so that a receiver can detect duplicates.
  const id = `${name}-${version}`;
  const headers = {
    'Content-Type': 'application/json',
    ...signatureHeaders(key, { id, body }, context.world.now()),
  };
  const purpose = 'deliver the certificate';
  await send(
    context,
    { method: 'POST', url, headers, body, ca, purpose, secrets: [secret, privateKey] },
    signal,
  );
  return {};
}
