/** Endpoints in plain words: their protocol, what they serve, and why they have their state. */
import type { Endpoint, EndpointTrust, StartTls } from '../data/shapes.ts';
import { versionText } from './deployment-words.ts';

export const protocolNames: Readonly<Record<StartTls, string>> = {
  ...{ smtp: 'SMTP', imap: 'IMAP', pop3: 'POP3', ldap: 'LDAP', ftp: 'FTP', xmpp: 'XMPP' },
  ...{ postgres: 'PostgreSQL', mysql: 'MySQL' },
};

export const trustNames: Readonly<Record<EndpointTrust, string>> = {
  auto: 'public roots, private CAs and the chain of the certificate',
  public: 'public roots',
  'private-ca': 'private CAs of the vault',
  bundle: 'own CA certificates',
};

/** "TLS", "STARTTLS in SMTP". */
export function protocolText(starttls: StartTls | null): string {
  return starttls === null ? 'TLS' : `STARTTLS in ${protocolNames[starttls]}`;
}

/** "STARTTLS in SMTP, server name mail.example.com": the server name only if it is not the host of the address. */
export function handshakeText({ address, server_name, starttls }: Endpoint): string {
  const protocol = protocolText(starttls);
  if (server_name === '') return `${protocol}, no server name`;
  return address.startsWith(`${server_name}:`) ? protocol : `${protocol}, server name ${server_name}`;
}

/** The version that is served, or the names of another certificate. */
export function servedText(endpoint: Endpoint): string {
  const { fingerprint_sha256, certificate, version, names } = endpoint;
  if (fingerprint_sha256 === null) return '—';
  if (version !== null) return versionText(endpoint);
  const [first = 'without a name', ...others] = names;
  const text = others.length === 0 ? first : `${first} and ${others.length} more`;
  return certificate === null ? text : `another: ${text}`;
}

/** Why the endpoint has its state, or that its last check failed; undefined if all is well. */
export function endpointReason({
  state,
  reason,
  error,
  version,
  current_version: current,
}: Endpoint): string | undefined {
  // The expiry has a place of its own.
  if (state === 'unchecked' || state === 'expiring') return undefined;
  if (reason !== null) return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}`;
  if (error !== null) return `Last check failed: ${error}`;
  if (version !== null && current !== null && version < current) return 'New version not served yet';
  return undefined;
}
