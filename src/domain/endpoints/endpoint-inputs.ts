/** What an endpoint is, as the API and the command line take it. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { day, durationPattern, hour, minute, parseDuration } from '../../base/duration.ts';
import { parseIdentifier } from '../../base/identifier.ts';
import { type StartTls, startTlsProtocols } from '../../net/starttls.ts';
import { certName, parsed, quoted } from '../input-strings.ts';
import { trust as certificatesInPem } from '../trusted-certificates.ts';

/** How often an endpoint is checked unless it says otherwise. */
export const defaultInterval = hour;

/** The maximum size of a bundle in characters: all public roots fit. */
const largestBundle = 262_144;

/** The trust that a caller can choose; a bundle follows from `ca_pem`. */
export const trustChoices = ['auto', 'public', 'private-ca'] as const;

const defaultPorts: Readonly<Record<StartTls, number>> = {
  ...{ smtp: 25, imap: 143, pop3: 110, ldap: 389, ftp: 21, xmpp: 5222 },
  ...{ postgres: 5432, mysql: 3306 },
};

export type Address = {
  readonly host: string;
  /** Undefined for the usual one. */
  readonly port: number | undefined;
};

/** `host`, `host:port`, `address`, `address:port` or `[address]:port`; undefined for anything else. */
export function parseAddress(text: string): Address | undefined {
  if (isIP(text) === 6) return addressOf(text, undefined);
  const [, inBrackets, plain, digits] =
    /^(?:\[([^\]]{1,64})\]|([^:[\]]{1,512}))(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  if (inBrackets !== undefined && isIP(inBrackets) !== 6) return undefined;
  return addressOf(inBrackets ?? plain ?? '', digits === undefined ? undefined : Number(digits));
}

function addressOf(text: string, port: number | undefined): Address | undefined {
  const host = parseIdentifier(text);
  if (host === undefined || host.startsWith('*') || (port ?? 0) > 65_535) return undefined;
  return { host, port };
}

/** The port of TLS from the first byte, or of the protocol. */
export function usualPort(starttls: StartTls | null): number {
  return starttls === null ? 443 : defaultPorts[starttls];
}

/** The protocol that switches to TLS on servers with this port; null for TLS from the first byte. */
export function usualProtocol(port: number): StartTls | null {
  if (port === submission) return 'smtp';
  return startTlsProtocols.find((protocol) => defaultPorts[protocol] === port) ?? null;
}

/** RFC 6409 §3.1. */
const submission = 587;

/** `host:port`, with brackets around an IPv6 address. */
export function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

const address = parsed(
  parseAddress,
  (text) =>
    `${quoted(text)} is not an address: write a host with a port, such as www.example.com:443 or [2001:db8::1]:443`,
  { pattern: '^[^/@?#]+$' },
).describe('a host with a port, such as www.example.com:443; the usual port of the protocol may be omitted');

const serverName = parsed(
  (text) => {
    if (text === '') return text;
    const name = parseIdentifier(text);
    return name === undefined || name.startsWith('*') || isIP(name) !== 0 ? undefined : name;
  },
  (text) => `${quoted(text)} is not a server name: write a DNS name, or nothing to send none`,
  { pattern: '^[^/@?#]*$' },
);

const interval = parsed(
  (text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= 5 * minute && ms <= 30 * day ? ms : undefined;
  },
  (text) => `${quoted(text)} is not an interval: write a number and m, h or d, from 5m to 30d, such as 1h`,
  { pattern: durationPattern },
);

const settings = {
  certificate: certName
    .nullable()
    .optional()
    .describe('the certificate that is expected there; null to only watch what is served'),
  server_name: serverName
    .nullable()
    .optional()
    .describe(
      'for the handshake (SNI), empty for none; by default the host, or a name of the certificate that fits',
    ),
  starttls: z
    .enum(startTlsProtocols)
    .nullable()
    .optional()
    .describe('the protocol that switches to TLS; null for TLS from the first byte'),
  trust: z
    .enum(trustChoices)
    .optional()
    .describe(
      'auto: the public roots, the private CAs and the chain of the certificate; public: the public roots; private-ca: the private CAs of the vault',
    ),
  ca_pem: z
    .string()
    .max(largestBundle)
    .pipe(certificatesInPem)
    .nullable()
    .optional()
    .describe('trust these certificates only'),
  interval: interval.optional().describe('between two checks, from 5m to 30d; by default 1h'),
};

const oneTrust = {
  check: ({ trust, ca_pem }: { trust?: unknown; ca_pem?: unknown }) =>
    trust === undefined || ca_pem === undefined || ca_pem === null,
  message: 'trust and ca_pem exclude each other: use one of them',
};

export const createEndpointInput = z
  .strictObject({ address, ...settings })
  .refine(oneTrust.check, oneTrust.message);

export const updateEndpointInput = z
  .strictObject({ address: address.optional(), ...settings })
  .refine(oneTrust.check, oneTrust.message);

export type CreateEndpointInput = z.output<typeof createEndpointInput>;
export type UpdateEndpointInput = z.output<typeof updateEndpointInput>;
