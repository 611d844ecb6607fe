/** What the vault is for browsers that create and use passkeys (WebAuthn §5.1.2): a domain name and an origin. */
import { isIP } from 'node:net';

export type RelyingParty = {
  /** The domain name that passkeys belong to. */
  readonly id: string;
  /** Where they are used; scheme, host and port. */
  readonly origin: string;
};

/**
 * The relying party of a vault with this public URL; undefined without one, for an IP address, and for plain HTTP
 * except to localhost, because browsers have no passkeys there.
 */
export function relyingParty(publicUrl: string | undefined): RelyingParty | undefined {
  const url = publicUrl === undefined ? null : URL.parse(publicUrl);
  if (url === null) return undefined;
  const { hostname, protocol, origin } = url;
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost');
  const isAddress = isIP(hostname) !== 0 || hostname.startsWith('[');
  return isAddress || (protocol !== 'https:' && !isLocal) ? undefined : { id: hostname, origin };
}
