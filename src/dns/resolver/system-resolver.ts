/** DNS queries over the network with Node's resolver (c-ares), with limits for callers that poll. */
import type { CaaRecord as NodeCaaRecord } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { second } from '../../base/duration.ts';
import { realWorld, type World } from '../../base/world.ts';
import { type OutboundGuard, OutboundRefusal, outboundGuard } from '../../net/outbound-guard.ts';
import { DnsProviderError } from '../dns-provider.ts';
import { encodeRequest, opcode, parseAnswer, recordType } from './dns-message.ts';
import { plainName, readName } from './dns-name.ts';
import type { CaaRecord, DnsResolver, ValidationResolver } from './dns-resolver.ts';
import { type DnsServer, tcpExchange } from './tcp-exchange.ts';

/** Timeout of one query to a server, and number of tries. A silent server costs the product of both. */
export type Patience = { readonly timeoutMs: number; readonly tries: number };

const usual: Patience = { timeoutMs: 2000, tries: 3 };

/**
 * Queries `configured` (`ip:port`), or else the system's resolver. Nothing is cached between queries, so changed system
 * settings apply immediately. Both are settings of this host; the guard checks servers that zones name. Throws
 * DnsProviderError if there is no response, or an error response.
 */
export function systemResolver(
  configured: string | undefined,
  patience: Patience = usual,
  guard: OutboundGuard = outboundGuard(),
  world: Pick<World, 'sleep' | 'randomBytes'> = realWorld,
): DnsResolver & ValidationResolver {
  const ask = async <T>(
    what: string,
    question: (resolver: Resolver) => Promise<T[]>,
    server = configured,
  ): Promise<T[]> => {
    const resolver = new Resolver({
      timeout: patience.timeoutMs,
      maxTimeout: patience.timeoutMs,
      tries: patience.tries,
    });
    try {
      if (server !== undefined && server !== configured) refuse(guard, server);
      if (server !== undefined) resolver.setServers([server]);
      return await question(resolver);
    } catch (error) {
      if (error instanceof OutboundRefusal) throw new DnsProviderError(error.message, { cause: error });
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'ENOTFOUND' || code === 'ENODATA') return [];
      const whom = server ?? "the system's resolver";
      throw new DnsProviderError(`query for ${what} failed: ${whom} ${reasons[code] ?? `failed (${code})`}`, {
        cause: error,
      });
    }
  };
  const cname = async (name: string, server?: string) => {
    const [target] = await ask(`the CNAME of ${name}`, (resolver) => resolver.resolveCname(name), server);
    return target;
  };
  /** The name servers of an alias are those of its target, which may be in another owner's zone. */
  const inZone = async (name: string, names: string[], server?: string) =>
    names.length > 0 && (await cname(name, server)) !== undefined ? [] : names;
  const referral = async (name: string, server: string) => {
    const { signal } = new AbortController();
    return referredServers({ world, guard }, addressOf(server), name, signal).catch(() => {
      // Without a referral the name is not a zone.
      return [];
    });
  };
  return {
    configured,
    cname,
    txt: async (name, server) => {
      const records = await ask(`the TXT of ${name}`, (resolver) => resolver.resolveTxt(name), server);
      return records.map((strings) => strings.join(''));
    },
    nameServers: async (name, server) => {
      const asked = ask(`the NS of ${name}`, (resolver) => resolver.resolveNs(name), server);
      if (server === undefined) return inZone(name, await asked);
      // A server that also resolves recursively may fail where it would otherwise refer.
      const names = await asked.catch(() => []);
      return names.length > 0 ? inZone(name, names, server) : referral(name, server);
    },
    caa: async (name) => {
      const records = await ask(`the CAA of ${name}`, (resolver) => resolver.resolveCaa(name));
      return records.map(caaOf);
    },
    negativeTtl: async (zone) => {
      const [soa] = await ask(`the SOA of ${zone}`, async (resolver) => [await resolver.resolveSoa(zone)]);
      return (soa?.minttl ?? 0) * second;
    },
    addresses: async (name) => {
      const both = await Promise.allSettled([
        ask(`the A of ${name}`, (resolver) => resolver.resolve4(name)),
        ask(`the AAAA of ${name}`, (resolver) => resolver.resolve6(name)),
      ]);
      const found = both.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
      const failed = both.find((one) => one.status === 'rejected');
      if (found.length === 0 && failed !== undefined) throw failed.reason;
      return found;
    },
  };
}

/**
 * The name servers of the zone with the apex `name`, according to this server of the parent zone or of both; empty if
 * it is not a separate zone. Referrals (RFC 1034 §4.3.2) are in the authority section, which Node's resolver does not
 * return. Throws DnsProviderError or RangeError if there is no readable response.
 */
async function referredServers(
  { world, guard }: { readonly world: Pick<World, 'sleep' | 'randomBytes'>; readonly guard: OutboundGuard },
  server: DnsServer,
  name: string,
  signal: AbortSignal,
): Promise<string[]> {
  const id = world.randomBytes(2).readUInt16BE();
  const question = { name, type: recordType.ns };
  const message = await tcpExchange(
    { world, guard },
    server,
    encodeRequest({ id, opcode: opcode.query, question }),
    signal,
  );
  const { answers, authorities } = parseAnswer(message);
  return [...answers, ...authorities]
    .filter((record) => record.type === recordType.ns && record.name === plainName(name))
    .map(({ data }) => readName(message, data.byteOffset - message.byteOffset).name);
}

/**
 * Node names a member after the tag. A tag that hides the flags counts as critical, as does the bit that many
 * owners of zones take for the critical one.
 */
function caaOf(record: NodeCaaRecord): CaaRecord {
  const { critical, ...rest }: Record<string, unknown> = { ...record };
  const [tag = 'critical', value = critical] = Object.entries(rest).find(([name]) => name !== 'type') ?? [];
  const isCritical = typeof critical !== 'number' || (critical & (128 | 1)) !== 0;
  return { isCritical, tag: tag.toLowerCase(), value: String(value) };
}

/** Throws OutboundRefusal for an `ip:port` that must not be queried. */
function refuse(guard: OutboundGuard, server: string): void {
  const { host, port } = addressOf(server);
  guard.target(host, port);
}

/** The parts of `ip:port` or `[ip]:port`. */
function addressOf(server: string): DnsServer {
  const at = server.lastIndexOf(':');
  return { host: server.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(server.slice(at + 1)) };
}

/** Descriptions of c-ares error codes. */
const reasons: Readonly<Record<string, string>> = {
  ETIMEOUT: 'did not answer',
  ECONNREFUSED: 'is unreachable',
  ESERVFAIL: 'answered SERVFAIL',
  EREFUSED: 'answered REFUSED',
  EFORMERR: 'answered FORMERR',
  ENOTIMP: 'answered NOTIMP',
  EBADRESP: 'sent an unreadable answer',
  EBADNAME: 'rejected the name',
};
