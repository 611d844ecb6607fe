/** Questions to name servers: the system's, the configured one, or the authoritative servers of a zone. */

/** Answers are empty where the name or the type does not exist. Anything else that goes wrong throws. */
export type DnsResolver = {
  /** The strings of each TXT record, joined. `server` is `ip:port`; without it the configured or the system's resolver is asked. */
  readonly txt: (name: string, server?: string) => Promise<string[]>;
  readonly cname: (name: string) => Promise<string | undefined>;
  /** Names of the authoritative servers of the zone whose apex this name is; empty where it is none. */
  readonly nameServers: (name: string) => Promise<string[]>;
  /** IPv4 and IPv6 addresses. */
  readonly addresses: (name: string) => Promise<string[]>;
  /** `ip:port` of the resolver that was configured with `--resolver`, where one was. */
  readonly configured: string | undefined;
};
