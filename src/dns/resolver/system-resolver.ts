/** Questions over the network: node's resolver (c-ares), with limits that suit somebody who asks again anyway. */
import { Resolver } from 'node:dns/promises';
import { second } from '../../base/duration.ts';
import { realWorld, type World } from '../../base/world.ts';
import { type OutboundGuard, OutboundRefusal, outboundGuard } from '../../net/outbound-guard.ts';
import { DnsProviderError } from '../dns-provider.ts';
import type { DnsResolver } from './dns-resolver.ts';
import { referredServers } from './referral.ts';
import type { DnsServer } from './tcp-exchange.ts';

/** How long one server may take to answer, and how often it is asked. A silent one costs the product of both. */
export type Patience = { readonly timeoutMs: number; readonly tries: number };

const usual: Patience = { timeoutMs: 2000, tries: 3 };

/**
 * Asks `configured` (`ip:port`), or else what the system is set to. Nothing is kept between two questions: a change of the
 * system's settings counts at once. Both are this machine's settings; the guard is asked about servers that zones name.
 * Throws DnsProviderError where there is no answer, or one that is an error.
 */
export function systemResolver(
  configured: string | undefined,
  patience: Patience = usual,
  guard: OutboundGuard = outboundGuard(),
  world: Pick<World, 'sleep' | 'randomBytes'> = realWorld,
): DnsResolver {
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
      // A server that also resolves for others may fail on what it would only refer to.
      const names = await asked.catch(() => []);
      return names.length > 0 ? inZone(name, names, server) : referral(name, server);
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

/** Throws OutboundRefusal for an `ip:port` that may not be asked. */
function refuse(guard: OutboundGuard, server: string): void {
  const { host, port } = addressOf(server);
  guard.target(host, port);
}

/** The parts of `ip:port` or `[ip]:port`. */
function addressOf(server: string): DnsServer {
  const at = server.lastIndexOf(':');
  return { host: server.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(server.slice(at + 1)) };
}

/** c-ares' words for people, by error code. */
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
