/**
 * External account binding (RFC 8555 §7.3.4): a new account shows with the key of an ACME client that it belongs to
 * that client.
 */
import type { DatabaseContext, KeyringContext, LogContext } from '../../contexts.ts';
import { type AcmeClient, findClientByKid } from '../clients/client-access.ts';
import { readAccountKey } from '../protocol/account-keys.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { isSignedBy, parseObject, readMessage, type SignedMessage } from '../protocol/signed-messages.ts';

const algorithms = ['HS256', 'HS384', 'HS512'];

/** Verified in place of the key of a client that does not exist, so that the time says nothing about it. */
const noKey = Buffer.alloc(32);

/** The binding of a request for an account. */
export type Binding = {
  /** The value of `externalAccountBinding`, which is not checked yet. */
  readonly binding: unknown;
  /** The URL of the request, which the binding must name too. */
  readonly url: string;
  /** The thumbprint of the key of the account. */
  readonly thumbprint: string;
};

/**
 * The client that an account is bound to. Throws `malformed` for a binding that is not one to this key and URL,
 * `badSignatureAlgorithm`, and `unauthorized`, with the same words for an unknown client and a wrong MAC.
 */
export async function boundClient(
  vault: DatabaseContext & KeyringContext & LogContext,
  { binding, url, thumbprint }: Binding,
): Promise<AcmeClient> {
  const message = readMessage(binding, 'The external account binding');
  refuseOtherHeader(message, url);
  if (boundThumbprint(message) !== thumbprint) {
    throw new AcmeProblem(
      'malformed',
      'The external account binding is for another key than that of the request.',
    );
  }
  const { kid = '' } = message.header;
  const found = await findClientByKid(vault, kid);
  const isBound = await isSignedBy(message, new Uint8Array(found?.hmacKey.expose() ?? noKey));
  if (found !== undefined && isBound) return found.client;
  throw new AcmeProblem(
    'unauthorized',
    'The external account binding is not valid: there is no ACME client with this kid, or its HMAC key is another one. "vault acme-client list" shows the kids, and "vault acme-client rotate" replaces the key of a client.',
  );
}

function refuseOtherHeader({ header }: SignedMessage, url: string): void {
  if (!algorithms.includes(header.alg)) {
    throw new AcmeProblem(
      'badSignatureAlgorithm',
      `The external account binding must be signed with ${algorithms.join(', ')}.`,
      { algorithms },
    );
  }
  if (header.kid === undefined) {
    throw new AcmeProblem('malformed', 'The external account binding needs the header kid, not jwk.');
  }
  if (header.nonce !== undefined) {
    throw new AcmeProblem('malformed', 'The external account binding must not have a nonce.');
  }
  if (header.url !== url) {
    throw new AcmeProblem('malformed', 'The external account binding is for another URL than the request.');
  }
}

function boundThumbprint({ payload }: SignedMessage): string | undefined {
  const jwk = parseObject(payload);
  if (jwk === undefined) {
    throw new AcmeProblem(
      'malformed',
      'The payload of the external account binding must be the key of the account.',
    );
  }
  return readAccountKey(jwk).thumbprint;
}
