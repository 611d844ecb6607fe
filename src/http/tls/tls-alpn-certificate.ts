/**
 * Finds the certificate that answers a tls-alpn-01 challenge (RFC 8737 §3) by the server name of the handshake.
 * Challenges come from the database, so that any process of the vault can answer them, regardless of which one has the
 * order.
 */
import { createSecureContext, type SecureContext } from 'node:tls';
import { day, hour } from '../../base/duration.ts';
import { type Identifier, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { validationCertificate } from '../../crypto/x509/acme-validation-certificate.ts';
import type { TimedContext } from '../../domain/contexts.ts';
import { type OpenChallenge, openTlsAlpnChallenge } from '../../domain/orders/open-challenges.ts';

/** The context for a client that requests this name with acme-tls/1; undefined if there is no pending challenge. */
export type FindChallengeContext = (serverName: string) => Promise<SecureContext | undefined>;

/** More than the number of concurrent challenges. */
const maxCachedContexts = 200;

/** A CA validates from several locations at once; each challenge gets one certificate, issued on first use. */
export function challengeContexts(vault: TimedContext): FindChallengeContext {
  const remembered = new Map<number, Promise<SecureContext>>();
  return async (serverName) => {
    const identifier = identifierIn(serverName);
    if (identifier === undefined) return undefined;
    const challenge = await openTlsAlpnChallenge(vault, identifier);
    if (challenge === undefined) return undefined;
    const known = remembered.get(challenge.id);
    if (known !== undefined) return known;
    const [oldest] = remembered.keys();
    if (oldest !== undefined && remembered.size >= maxCachedContexts) remembered.delete(oldest);
    const made = contextFor(vault, identifier, challenge);
    remembered.set(challenge.id, made);
    made.catch(() => {
      // The caller gets the error; the next one retries.
      remembered.delete(challenge.id);
    });
    return made;
  };
}

/** The identifier of a server name: addresses use their reverse names (RFC 8738 §6). */
export function identifierIn(serverName: string): Identifier | undefined {
  const name = serverName.toLowerCase();
  const four = /^((?:\d{1,3}\.){4})in-addr\.arpa$/.exec(name)?.[1];
  const six = /^((?:[0-9a-f]\.){32})ip6\.arpa$/.exec(name)?.[1];
  if (four !== undefined) return address(parts(four).join('.'));
  if (six !== undefined)
    return address(
      parts(six)
        .join('')
        .replace(/.{4}(?!$)/g, '$&:'),
    );
  const identifier = parseIdentifier(name);
  // RFC 6066 §3 does not allow addresses as server names.
  return identifier === undefined || isAddress(identifier) ? undefined : identifier;
}

function parts(reverseName: string): string[] {
  return reverseName.split('.').slice(0, -1).toReversed();
}

function address(text: string): Identifier | undefined {
  const identifier = parseIdentifier(text);
  return identifier !== undefined && isAddress(identifier) ? identifier : undefined;
}

async function contextFor(
  { world }: TimedContext,
  identifier: Identifier,
  { key_authorization }: OpenChallenge,
): Promise<SecureContext> {
  const now = world.now();
  const terms = { serial: world.randomBytes(16), notBefore: now - hour, notAfter: now + 7 * day };
  const { certificate, privateKey } = await validationCertificate(identifier, key_authorization, terms);
  return createSecureContext({
    cert: certificate,
    key: privateKey.expose(),
    minVersion: 'TLSv1.2',
  });
}
