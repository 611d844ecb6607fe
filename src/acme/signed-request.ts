/**
 * The flattened JWS of RFC 8555 §6.2, for requests and for signed objects inside them. jose is loaded for the first
 * one, so that commands without a CA do not wait for it.
 */
import type { FlattenedSign } from 'jose';
import type { Secret } from '../base/secret.ts';
import { keyObject } from '../crypto/key-pair.ts';
import { algorithmOf, publicJwk } from './account-key.ts';
import type { AcmeAccount, ExternalAccount } from './acme-types.ts';

/**
 * An account signs with `kid`, a bare key with `jwk`: for newAccount, and for revocation with the key of a certificate.
 */
export type AcmeSigner = AcmeAccount | { readonly privateKey: Secret; readonly url?: undefined };

/** Input of JSON.stringify; `''` is the empty payload of POST-as-GET (§6.3). */
export type AcmePayload = Readonly<Record<string, unknown>> | '';

/** The body of a signed POST to `url`. */
export async function signRequest(
  url: string,
  payload: AcmePayload,
  signer: AcmeSigner,
  nonce: string,
): Promise<string> {
  const { privateKey, url: kid } = signer;
  const who = kid === undefined ? { jwk: await publicJwk(privateKey) } : { kid };
  return JSON.stringify(
    await (await bytesOf(payload))
      .setProtectedHeader({ alg: algorithmOf(privateKey), nonce, url, ...who })
      .sign(keyObject(privateKey)),
  );
}

/** The binding of a new account key to an existing customer of the CA (§7.3.4), signed with HMAC-SHA-256. */
export async function externalAccountBinding(
  url: string,
  accountKey: Secret,
  { kid, hmacKey }: ExternalAccount,
): Promise<unknown> {
  return (await bytesOf({ ...(await publicJwk(accountKey)) }))
    .setProtectedHeader({ alg: 'HS256', kid, url })
    .sign(new Uint8Array(hmacKey.expose()));
}

/** The new key's consent to take over the account (§7.3.5). */
export async function keyChange(url: string, account: AcmeAccount, newKey: Secret): Promise<AcmePayload> {
  const payload = { account: account.url, oldKey: await publicJwk(account.privateKey) };
  const signed = await (await bytesOf(payload))
    .setProtectedHeader({ alg: algorithmOf(newKey), jwk: await publicJwk(newKey), url })
    .sign(keyObject(newKey));
  return { ...signed };
}

async function bytesOf(payload: AcmePayload): Promise<FlattenedSign> {
  const { FlattenedSign } = await import('jose');
  return new FlattenedSign(Buffer.from(payload === '' ? '' : JSON.stringify(payload)));
}
