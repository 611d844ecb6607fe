/** Questions to name servers: the system's, the configured one, or the authoritative servers of a zone. */

/**
 * Answers are empty where the name or the type does not exist. Anything else that goes wrong throws. `server` is `ip:port`
 * of a name server that is asked directly; without it the configured or the system's resolver is, which may answer from a
 * cache and keeps what it is asked for, also that a name does not exist (RFC 2308).
 */
export type DnsResolver = {
  /** The strings of each TXT record, joined. */
  readonly txt: (name: string, server?: string) => Promise<string[]>;
  readonly cname: (name: string, server?: string) => Promise<string | undefined>;
  /**
   * Names of the authoritative servers of the zone whose apex this name is; empty where it is none. A server that is asked
   * directly may also refer to them, as the parent zone does (RFC 1034 §4.3.2).
   */
  readonly nameServers: (name: string, server?: string) => Promise<string[]>;
  /** IPv4 and IPv6 addresses. */
  readonly addresses: (name: string) => Promise<string[]>;
  /** The negative TTL of this zone in milliseconds (RFC 2308 §5); 0 if no server returns one. */
  readonly negativeTtl: (zone: string) => Promise<number>;
  /** `ip:port` of the resolver that was configured with `--resolver`, where one was. */
  readonly configured: string | undefined;
};
