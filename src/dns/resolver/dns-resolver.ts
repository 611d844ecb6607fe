/** DNS queries: to the system resolver, the configured resolver, or the authoritative servers of a zone. */

/**
 * Results are empty if the name or the type does not exist. All other failures throw. `server` is the `ip:port` of a
 * name server to query directly; without it, the configured or the system resolver is queried, which caches results,
 * including that a name does not exist (RFC 2308).
 */
export type DnsResolver = {
  /** The strings of each TXT record, concatenated. */
  readonly txt: (name: string, server?: string) => Promise<string[]>;
  readonly cname: (name: string, server?: string) => Promise<string | undefined>;
  /**
   * Names of the authoritative servers of the zone with this apex; empty if it is not an apex. A server that is queried
   * directly may also refer to them, like the parent zone does (RFC 1034 §4.3.2).
   */
  readonly nameServers: (name: string, server?: string) => Promise<string[]>;
  /** IPv4 and IPv6 addresses. */
  readonly addresses: (name: string) => Promise<string[]>;
  /** The negative TTL of this zone in milliseconds (RFC 2308 §5); 0 if no server returns one. */
  readonly negativeTtl: (zone: string) => Promise<number>;
  /** `ip:port` of the resolver configured with `--resolver`, if any. */
  readonly configured: string | undefined;
};

/** A CAA record (RFC 8659 §4.1). */
export type CaaRecord = {
  readonly isCritical: boolean;
  /** In lower case. */
  readonly tag: string;
  readonly value: string;
};

/** What the validation of names needs. As in DnsResolver, an empty result means that there is none. */
export type ValidationResolver = Pick<DnsResolver, 'txt' | 'cname' | 'addresses'> & {
  /** The records at this name, or behind its alias; those of parents are separate questions. */
  readonly caa: (name: string) => Promise<CaaRecord[]>;
};
